"""The columns of a table of calls: what each is called, shows in text, and holds in a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from iprof_py.analyses import formatting
from iprof_py.analyses.calls import Calls
from iprof_py.errors import ExitStatus, IprofError

Value = int | float


@dataclass(frozen=True)
class Column:
    """One column. ``text`` and ``value`` take a row's calls and the table's total."""

    name: str  # on the command line
    heading: str  # in text
    key: str  # in a file, with its unit
    value: Callable[[Calls, Calls], Value]
    show: Callable[[Value], str]
    in_total: bool = True  # whether the total row shows it
    timed: bool = True  # whether it is blank without any call that has a time

    def text(self, calls: Calls, total: Calls) -> str:
        """The cell of a row."""
        if self.timed and not calls.timed:
            return ""
        return self.show(self.value(calls, total))


def _share(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def _percent(value: Value) -> str:
    return f"{value:.2f}%"


def _duration(name: str, heading: str, value: Callable[[Calls], Value], in_total: bool = True) -> Column:
    return Column(name, heading, f"{name}_ns", lambda calls, _: value(calls), formatting.duration, in_total)


def _count(name: str, heading: str, value: Callable[[Calls], int]) -> Column:
    return Column(name, heading, name, lambda calls, _: value(calls), str, timed=False)


TIME: Final = _duration("time", "Time", lambda calls: calls.time_ns)
SELF: Final = _duration("self", "Self", lambda calls: calls.self_ns)
CALLS: Final = _count("calls", "Calls", lambda calls: calls.calls)
AVERAGE: Final = _duration("avg", "Average", lambda calls: calls.average_ns, in_total=False)
MAX: Final = _duration("max", "Max", lambda calls: calls.max_ns, in_total=False)
ERROR: Final = _count("error", "Error", lambda calls: calls.errors)
STD: Final = _duration("std", "Std", lambda calls: calls.deviation_ns, in_total=False)
P50: Final = _duration("p50", "P50", lambda calls: calls.percentile_ns(50), in_total=False)
P99: Final = _duration("p99", "P99", lambda calls: calls.percentile_ns(99), in_total=False)

STANDARD: Final = (
    TIME,
    Column("time%", "Time(%)", "time_percent", lambda calls, total: _share(calls.time_ns, total.time_ns), _percent),
    SELF,
    Column("self%", "Self(%)", "self_percent", lambda calls, total: _share(calls.self_ns, total.self_ns), _percent),
    CALLS,
    AVERAGE,
    _duration("min", "Min", lambda calls: calls.min_ns, in_total=False),
    MAX,
)
DISTRIBUTION: Final = (STD, P50, P99)
COLUMNS: Final = {column.name: column for column in (*STANDARD, *DISTRIBUTION, ERROR)}
# What a table can be sorted by; "name" is not a column of calls.
SORT_KEYS: Final = {column.name: column for column in (TIME, SELF, CALLS, AVERAGE, MAX)}


def parse(text: str) -> tuple[Column, ...]:
    """The columns named by ``name,…``; raises IprofError (USAGE) for one that does not exist."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in COLUMNS:
            raise IprofError(f"unknown column {name!r} (known: {', '.join(COLUMNS)})", ExitStatus.USAGE)
    return tuple(COLUMNS[name] for name in dict.fromkeys(names))
