"""The tally: where the time went, operator by operator.

``time`` is the time between a call's beginning and end, operators called from within included, so that it counts
nested operators more than once. ``self`` leaves those out: the self times of a table add up to the time really spent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TextIO

from iprof_py.analyses import formatting, graph
from iprof_py.backends import BackendRequest
from iprof_py.messages import notice, warn
from iprof_py.settings import AnalysisSettings
from iprof_py.traces import Trace

_SCOPE_LABEL: Final = "SCOPES"
_TIMED_COLUMNS: Final = ("Average", "Min", "Max")


@dataclass(frozen=True)
class Origin:
    """The thread that calls came from."""

    host: str
    pid: int
    tid: int


@dataclass(frozen=True)
class Calls:
    """Calls of one operator, or of several; times in nanoseconds.

    Calls without an entry are errors: they count, and have no time.
    """

    calls: int
    errors: int
    time_ns: int
    self_ns: int
    min_ns: int
    max_ns: int

    @property
    def timed(self) -> int:
        """The number of calls that have a time."""
        return self.calls - self.errors

    @property
    def average_ns(self) -> float:
        """The mean duration of the calls that have one."""
        return self.time_ns / self.timed

    def __add__(self, other: Calls) -> Calls:
        timed = [calls for calls in (self, other) if calls.timed]
        return Calls(
            self.calls + other.calls,
            self.errors + other.errors,
            self.time_ns + other.time_ns,
            self.self_ns + other.self_ns,
            min((calls.min_ns for calls in timed), default=0),
            max((calls.max_ns for calls in timed), default=0),
        )


NO_CALLS: Final = Calls(0, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Row:
    """The calls of one operator on one thread."""

    origin: Origin
    is_scope: bool  # a record_function scope, no operator
    name: str  # the overload joined to it: aten::abs.out
    calls: Calls


@dataclass(frozen=True)
class Tally:
    """The tally of a trace."""

    rows: tuple[Row, ...]
    unpaired_entries: int
    unpaired_exits: int


@dataclass(frozen=True)
class Table:
    """Calls by operator, most time first, and where they came from."""

    origins: frozenset[Origin]
    calls: tuple[tuple[str, Calls], ...]

    @property
    def total(self) -> Calls:
        """All calls together."""
        return _total(calls for _, calls in self.calls)


def run(trace: Trace, settings: AnalysisSettings, output: TextIO) -> None:
    """Write the tally of a trace as text or JSON."""
    tally = read(trace)
    if not tally.rows:
        notice("the trace holds no PyTorch operator")
    _report_unpaired(tally)
    if settings.json:
        output.write(to_json(tally, settings) + "\n")
    elif tally.rows:
        output.write(to_text(tally, settings))


def read(trace: Trace) -> Tally:
    """Compute the tally of a trace; raises IprofError as `graph.run` does."""
    document = graph.run("tally", trace)
    return Tally(tuple(map(_read_row, document["rows"])), document["unpaired_entries"], document["unpaired_exits"])


def table_of(rows: Iterable[Row]) -> Table:
    """Merge the rows of any number of threads by operator. Ties in time are ordered by name."""
    merged: dict[str, Calls] = {}
    origins = set()
    for row in rows:
        origins.add(row.origin)
        merged[row.name] = merged.get(row.name, NO_CALLS) + row.calls
    ordered = sorted(merged.items(), key=lambda item: (-item[1].time_ns, item[0]))
    return Table(frozenset(origins), tuple(ordered))


def to_text(tally: Tally, settings: AnalysisSettings) -> str:
    """The tally as tables: one for the operators and one for the scopes, of all threads or of each."""
    parts = []
    for label, rows in _groups(tally, settings.backends):
        for heading, members in _tables(rows, settings.extended):
            table = _render(table_of(members), settings.max_name_size)
            parts.append(f"{label} | {heading}\n\n{table}\n")
    return "".join(parts)


def to_json(tally: Tally, settings: AnalysisSettings) -> str:
    """The tally as one line of JSON, with THAPI's keys; ``self`` and ``scopes`` are ours."""
    document: dict[str, Any] = {"units": {"time": "ns", "size": "bytes"}}
    operators = [row for row in tally.rows if not row.is_scope]
    scopes = [row for row in tally.rows if row.is_scope]
    if operators:
        level = str(settings.backends[0].level)
        document["host"] = {level: _json_node(operators, settings.extended)}
    if scopes:
        document["scopes"] = _json_node(scopes, settings.extended)
    document["unpaired"] = {"entries": tally.unpaired_entries, "exits": tally.unpaired_exits}
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def _read_row(document: dict[str, Any]) -> Row:
    name, overload = document["name"], document["overload"]
    return Row(
        Origin(document["host"], document["pid"], document["tid"]),
        document["kind"] == "scope",
        f"{name}.{overload}" if overload else name,
        Calls(
            document["calls"],
            document["errors"],
            document["time_ns"],
            document["self_ns"],
            document["min_ns"],
            document["max_ns"],
        ),
    )


def _total(calls: Iterable[Calls]) -> Calls:
    total = NO_CALLS
    for each in calls:
        total += each
    return total


def _report_unpaired(tally: Tally) -> None:
    if tally.unpaired_entries:
        warn(
            f"{tally.unpaired_entries} calls were entered and never left, because the program was killed in them or "
            f"their end was lost: they are not in the tally"
        )
    if tally.unpaired_exits:
        warn(f"{tally.unpaired_exits} calls were left and never entered: they count as errors, without time")


def _groups(tally: Tally, backends: Sequence[BackendRequest]) -> list[tuple[str, list[Row]]]:
    """The operators and the scopes, each with its label; empty ones left out."""
    label = ",".join(sorted(request.backend.label for request in backends))
    operators = [row for row in tally.rows if not row.is_scope]
    scopes = [row for row in tally.rows if row.is_scope]
    return [group for group in ((label, operators), (_SCOPE_LABEL, scopes)) if group[1]]


def _by_origin(rows: Iterable[Row]) -> dict[Origin, list[Row]]:
    groups: dict[Origin, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.origin, []).append(row)
    return dict(sorted(groups.items(), key=lambda item: (item[0].host, item[0].pid, item[0].tid)))


def _tables(rows: list[Row], extended: bool) -> list[tuple[str, list[Row]]]:
    """The groups of rows that get a table each, with their headings."""
    if not extended:
        return [(_count_heading({row.origin for row in rows}), rows)]
    return [
        (f"Hostname: {origin.host} | Process: {origin.pid} | Thread: {origin.tid} | ", members)
        for origin, members in _by_origin(rows).items()
    ]


def _count_heading(origins: set[Origin]) -> str:
    hosts = {origin.host for origin in origins}
    processes = {(origin.host, origin.pid) for origin in origins}
    return f"{len(hosts)} Hostnames | {len(processes)} Processes | {len(origins)} Threads | "


def _render(table: Table, max_name_size: int) -> str:
    total = table.total
    columns = _columns(total, max_name_size)
    rows = [[cell(name, calls) for cell in columns.values()] for name, calls in [*table.calls, ("Total", total)]]
    hidden = [(len(rows) - 1, number) for number, column in enumerate(columns) if column in _TIMED_COLUMNS]
    return formatting.table(list(columns), rows, blank=hidden)


_Cell = Callable[[str, Calls], str]


def _columns(total: Calls, max_name_size: int) -> dict[str, _Cell]:
    """The columns of a table: for each heading, what it shows of a row."""

    def timed(text: Callable[[Calls], str]) -> _Cell:
        return lambda _, calls: text(calls) if calls.timed else ""

    columns: dict[str, _Cell] = {
        "Name": lambda name, _: formatting.shorten(formatting.printable(name), max_name_size),
        "Time": timed(lambda calls: formatting.duration(calls.time_ns)),
        "Time(%)": timed(lambda calls: formatting.share(calls.time_ns, total.time_ns)),
        "Self": timed(lambda calls: formatting.duration(calls.self_ns)),
        "Self(%)": timed(lambda calls: formatting.share(calls.self_ns, total.self_ns)),
        "Calls": lambda _, calls: str(calls.calls),
        "Average": timed(lambda calls: formatting.duration(calls.average_ns)),
        "Min": timed(lambda calls: formatting.duration(calls.min_ns)),
        "Max": timed(lambda calls: formatting.duration(calls.max_ns)),
    }
    if total.errors:
        columns["Error"] = lambda _, calls: str(calls.errors)
    return columns


def _json_node(rows: list[Row], extended: bool) -> Any:
    if not extended:
        return {"data": _json_data(table_of(rows))}
    return [
        {
            "Hostname": origin.host,
            "Process": origin.pid,
            "Thread": origin.tid,
            "data": _json_data(table_of(members)),
        }
        for origin, members in _by_origin(rows).items()
    ]


def _json_data(table: Table) -> dict[str, dict[str, int]]:
    return {name: _json_calls(calls) for name, calls in [*table.calls, ("Total", table.total)]}


def _json_calls(calls: Calls) -> dict[str, int]:
    values = {
        "time": calls.time_ns,
        "self": calls.self_ns,
        "call": calls.calls,
        "min": calls.min_ns,
        "max": calls.max_ns,
    }
    return {**values, "error": calls.errors} if calls.errors else values
