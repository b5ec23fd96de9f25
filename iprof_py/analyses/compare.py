"""Two traces side by side: what changed from one to the other, operator by operator."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Final, TextIO

from iprof_py import traces
from iprof_py.analyses import formatting, tally
from iprof_py.analyses.calls import NO_CALLS, Calls, total
from iprof_py.errors import ExitStatus
from iprof_py.messages import warn
from iprof_py.settings import AnalysisSettings
from iprof_py.traces import Trace

_TOTAL: Final = "Total"


@dataclass(frozen=True)
class Side:
    """What one trace knows of an operator; time in nanoseconds, the share in percent of the trace's self time."""

    calls: int
    self_ns: int
    share: float


@dataclass(frozen=True)
class Change:
    """One operator in both traces."""

    name: str
    base: Side
    new: Side

    @property
    def calls(self) -> int:
        """More calls than before."""
        return self.new.calls - self.base.calls

    @property
    def self_ns(self) -> int:
        """More self time than before."""
        return self.new.self_ns - self.base.self_ns

    @property
    def share(self) -> float:
        """The share's growth, in percentage points."""
        return self.new.share - self.base.share

    @property
    def percent(self) -> float | None:
        """The self time's growth in percent; None where there was none before."""
        return 100 * self.self_ns / self.base.self_ns if self.base.self_ns else None


@dataclass(frozen=True)
class Comparison:
    """All operators of both traces, the largest change of self time first, and their sum."""

    changes: tuple[Change, ...]
    total: Change


def run(trace: Trace, settings: AnalysisSettings, output: TextIO) -> int:
    """Compare the base trace with ``trace``; exit status CHANGED when the new one is slower than the threshold allows.

    The threshold is a percentage of the base's whole self time, so that noise in small operators does not count.
    """
    assert settings.base is not None  # noqa: S101 - the command line sees to it
    comparison = compare(_calls(traces.open_trace(settings.base), settings), _calls(trace, settings))
    output.write(_FORMATS[settings.format](comparison, settings))
    return _judge(comparison, settings.threshold)


def compare(base: Mapping[str, Calls], new: Mapping[str, Calls]) -> Comparison:
    """What changed between the calls of two traces, by operator."""
    base_total, new_total = total(base.values()), total(new.values())
    changes = [
        Change(name, _side(base.get(name, NO_CALLS), base_total), _side(new.get(name, NO_CALLS), new_total))
        for name in {**base, **new}
    ]
    changes.sort(key=lambda change: (-abs(change.self_ns), change.name))
    return Comparison(tuple(changes), Change(_TOTAL, _side(base_total, base_total), _side(new_total, new_total)))


def _calls(trace: Trace, settings: AnalysisSettings) -> dict[str, Calls]:
    merged: dict[str, Calls] = {}
    for row in tally.read(trace, settings).rows:
        chosen = settings.filter is None or settings.filter.search(row.name)
        if chosen and not row.is_scope:
            merged[row.name] = merged.get(row.name, NO_CALLS) + row.calls
    return merged


def _side(calls: Calls, whole: Calls) -> Side:
    return Side(calls.calls, calls.self_ns, 100 * calls.self_ns / whole.self_ns if whole.self_ns else 0.0)


def _judge(comparison: Comparison, threshold_percent: float | None) -> int:
    if threshold_percent is None:
        return 0
    allowed_ns = comparison.total.base.self_ns * threshold_percent / 100
    over = [change for change in (comparison.total, *comparison.changes) if change.self_ns > allowed_ns]
    for change in over[:1]:
        grown = formatting.duration(change.self_ns)
        warn(f"{change.name} takes {grown} more, over the threshold of {threshold_percent:g} % of the base's self time")
    return ExitStatus.CHANGED if over else 0


def _shown(comparison: Comparison, settings: AnalysisSettings) -> list[Change]:
    return [*comparison.changes[: settings.top], comparison.total]


_HEADER: Final = (
    "Name",
    *("Calls", "Calls new", "Calls ±"),
    *("Self", "Self new", "Self ±", "Self ±(%)"),
    *("Self(%)", "Self(%) new", "Points ±"),
)


def _cells(change: Change, settings: AnalysisSettings) -> list[str]:
    return [
        formatting.shorten(formatting.printable(change.name), settings.max_name_size),
        str(change.base.calls),
        str(change.new.calls),
        f"{change.calls:+d}" if change.calls else "0",
        formatting.duration(change.base.self_ns),
        formatting.duration(change.new.self_ns),
        _signed_duration(change.self_ns),
        "new" if change.percent is None else f"{change.percent:+.2f}%",
        f"{change.base.share:.2f}%",
        f"{change.new.share:.2f}%",
        f"{change.share:+.2f}",
    ]


def _signed_duration(value_ns: int) -> str:
    sign = "+" if value_ns > 0 else "-" if value_ns < 0 else ""
    return sign + formatting.duration(abs(value_ns))


def _to_text(comparison: Comparison, settings: AnalysisSettings) -> str:
    rows = [_cells(change, settings) for change in _shown(comparison, settings)]
    return formatting.table(_HEADER, rows) + "\n"


def _to_markdown(comparison: Comparison, settings: AnalysisSettings) -> str:
    return formatting.markdown_table(_HEADER, [_cells(change, settings) for change in _shown(comparison, settings)])


def _to_csv(comparison: Comparison, settings: AnalysisSettings) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["name", "calls", "calls_new", "self_ns", "self_ns_new", "share", "share_new"])
    for change in comparison.changes[: settings.top]:
        base, new = change.base, change.new
        shares = (f"{base.share:.4f}", f"{new.share:.4f}")
        writer.writerow([change.name, base.calls, new.calls, base.self_ns, new.self_ns, *shares])
    return text.getvalue()


def _to_json(comparison: Comparison, settings: AnalysisSettings) -> str:
    document = {
        "units": {"self_ns": "ns", "share": "%"},
        "total": asdict(comparison.total),
        "changes": [asdict(change) for change in comparison.changes[: settings.top]],
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n"


_FORMATS: Final[Mapping[str, Callable[[Comparison, AnalysisSettings], str]]] = {
    "text": _to_text,
    "markdown": _to_markdown,
    "csv": _to_csv,
    "json": _to_json,
}
