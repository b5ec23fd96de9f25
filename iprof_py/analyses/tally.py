"""The tally: where the time went, operator by operator.

``time`` is the time between a call's beginning and end, operators called from within included, so that it counts
nested operators more than once. ``self`` leaves those out: the self times of a table add up to the time really spent.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TextIO

from iprof_py.analyses import columns, formatting, graph
from iprof_py.analyses.calls import NO_CALLS, Calls, Origin, operator_name, read_calls, total
from iprof_py.analyses.columns import Column
from iprof_py.messages import notice, warn
from iprof_py.settings import AnalysisSettings
from iprof_py.traces import Trace

_SCOPE_LABEL: Final = "SCOPES"
_TOTAL: Final = "Total"
_GROUP_HEADINGS: Final = {"scope": "Scope", "phase": "Phase"}
_NO_SCOPE: Final = "(none)"


@dataclass(frozen=True)
class Row:
    """The calls of one operator on one thread, and in one group when the tally is by scope or phase."""

    origin: Origin
    is_scope: bool  # a record_function scope, no operator
    name: str  # the overload joined to it: aten::abs.out
    group: str
    calls: Calls


@dataclass(frozen=True)
class Tally:
    """The tally of a trace."""

    rows: tuple[Row, ...]
    unpaired_entries: int
    unpaired_exits: int


@dataclass(frozen=True)
class Table:
    """One table: calls by operator in the order to show, and their total."""

    label: str  # BACKEND_PYTORCH or SCOPES
    keys: Mapping[str, str | int]  # what all of its rows share: Hostname, Process, Thread, Scope, Phase
    origins: frozenset[Origin]
    calls: tuple[tuple[str, Calls], ...]
    total: Calls

    @property
    def is_of_scopes(self) -> bool:
        """Whether its rows are record_function scopes."""
        return self.label == _SCOPE_LABEL


def run(trace: Trace, settings: AnalysisSettings, output: TextIO) -> int:
    """Write the tally of a trace in the format that was asked for."""
    tally = read(trace, settings)
    if not tally.rows:
        notice("the trace holds no PyTorch operator")
    _report_unpaired(tally)
    output.write(_FORMATS[settings.format](tables_of(tally, settings), tally, settings))
    return 0


def read(trace: Trace, settings: AnalysisSettings) -> Tally:
    """Compute the tally of a trace; raises IprofError as `graph.run` does."""
    wanted = _columns(settings, with_errors=False)
    parameters = {"by": settings.by, "histograms": any(column in columns.DISTRIBUTION for column in wanted)}
    document = graph.run("tally", trace, parameters)
    rows = map(_read_row, document["rows"])
    return Tally(tuple(rows), document["unpaired_entries"], document["unpaired_exits"])


def tables_of(tally: Tally, settings: AnalysisSettings) -> list[Table]:
    """The tables of a tally: operators, then scopes; one each, or one for each group and thread."""
    chosen = [row for row in tally.rows if settings.filter is None or settings.filter.search(row.name)]
    label = ",".join(sorted(request.backend.label for request in settings.backends))
    operators = [row for row in chosen if not row.is_scope]
    scopes = [row for row in chosen if row.is_scope]
    return [
        *_split(label, operators, settings, _GROUP_HEADINGS.get(settings.by)),
        *_split(_SCOPE_LABEL, scopes, settings, None),
    ]


def _split(label: str, rows: list[Row], settings: AnalysisSettings, group_heading: str | None) -> list[Table]:
    parts: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        thread = (row.origin,) if settings.extended else ()
        group = (row.group,) if group_heading else ()
        parts.setdefault((*thread, *group), []).append(row)
    tables = [
        _table(label, _keys(members[0], settings, group_heading), members, settings) for members in parts.values()
    ]
    return sorted(tables, key=partial(_table_order, settings))


def _keys(row: Row, settings: AnalysisSettings, group_heading: str | None) -> dict[str, str | int]:
    keys: dict[str, str | int] = {}
    if settings.extended:
        keys.update(Hostname=row.origin.host, Process=row.origin.pid, Thread=row.origin.tid)
    if group_heading:
        keys[group_heading] = row.group or _NO_SCOPE
    return keys


def _table_order(settings: AnalysisSettings, table: Table) -> tuple[Any, ...]:
    """Threads in order, and the groups of one with most self time first."""
    thread = min(origin.sort_key for origin in table.origins) if settings.extended else ()
    return thread, -table.total.self_ns, str(sorted(table.keys.items(), key=str))


def _table(label: str, keys: Mapping[str, str | int], rows: Iterable[Row], settings: AnalysisSettings) -> Table:
    merged: dict[str, Calls] = {}
    origins = set()
    for row in rows:
        origins.add(row.origin)
        merged[row.name] = merged.get(row.name, NO_CALLS) + row.calls
    sum_of_all = total(merged.values())
    ordered = sorted(merged.items(), key=_row_order(settings.sort, sum_of_all))
    return Table(label, keys, frozenset(origins), tuple(ordered[: settings.top]), sum_of_all)


def _row_order(sort: str, sum_of_all: Calls) -> Callable[[tuple[str, Calls]], tuple[float, str]]:
    """Largest first; ties, and everything when sorting by name, in the order of names."""
    column = columns.SORT_KEYS.get(sort)
    if column is None:
        return lambda item: (0, item[0])
    return lambda item: (-column.value(item[1], sum_of_all), item[0])


def _read_row(document: dict[str, Any]) -> Row:
    return Row(
        Origin(document["host"], document["pid"], document["tid"]),
        document["kind"] == "scope",
        operator_name(document),
        document["group"],
        read_calls(document),
    )


def _report_unpaired(tally: Tally) -> None:
    if tally.unpaired_entries:
        warn(
            f"{tally.unpaired_entries} calls were entered and never left, because the program was killed in them or "
            f"their end was lost: they are not in the tally"
        )
    if tally.unpaired_exits:
        warn(f"{tally.unpaired_exits} calls were left and never entered: they count as errors, without time")


def _columns(settings: AnalysisSettings, with_errors: bool) -> tuple[Column, ...]:
    """The columns to show; errors only where there are any, unless they were asked for."""
    if settings.columns:
        return tuple(columns.COLUMNS[name] for name in settings.columns)
    distribution = columns.DISTRIBUTION if settings.extended else ()
    errors = (columns.ERROR,) if with_errors else ()
    return (*columns.STANDARD, *distribution, *errors)


def to_text(tables: list[Table], _: Tally, settings: AnalysisSettings) -> str:
    """The tables as THAPI's users know them."""
    return "".join(f"{_heading(table)}\n\n{_text_table(table, settings)}\n" for table in tables)


def to_markdown(tables: list[Table], _: Tally, settings: AnalysisSettings) -> str:
    """The tables in Markdown, each under its heading."""
    parts = (f"**{_heading(table).strip(' |')}**\n\n{_markdown_table(table, settings)}" for table in tables)
    return "\n".join(parts)


def to_csv(tables: list[Table], _: Tally, settings: AnalysisSettings) -> str:
    """All tables as one, a row for each operator; names and numbers as they are, times in nanoseconds."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    shown = _columns(settings, with_errors=True)
    keys = list(dict.fromkeys(key for table in tables for key in table.keys))
    writer.writerow(["kind", *map(str.lower, keys), "name", *(column.key for column in shown)])
    for table in tables:
        kind = "scope" if table.is_of_scopes else "operator"
        shared = [kind, *(table.keys.get(key, "") for key in keys)]
        for name, calls in table.calls:
            writer.writerow([*shared, name, *(_plain(column.value(calls, table.total)) for column in shown)])
    return text.getvalue()


def to_json(tables: list[Table], tally: Tally, settings: AnalysisSettings) -> str:
    """One line of JSON with THAPI's keys; ``self``, ``scopes`` and ``unpaired`` are ours."""
    document: dict[str, Any] = {"units": {"time": "ns", "size": "bytes"}}
    operators = [table for table in tables if not table.is_of_scopes]
    scopes = [table for table in tables if table.is_of_scopes]
    if operators:
        document["host"] = {str(settings.backends[0].level): _json_node(operators, settings)}
    if scopes:
        document["scopes"] = _json_node(scopes, settings)
    document["unpaired"] = {"entries": tally.unpaired_entries, "exits": tally.unpaired_exits}
    return json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n"


_FORMATS: Final[Mapping[str, Callable[[list[Table], Tally, AnalysisSettings], str]]] = {
    "text": to_text,
    "json": to_json,
    "csv": to_csv,
    "markdown": to_markdown,
}


def _heading(table: Table) -> str:
    parts = [table.label, *(f"{key}: {formatting.printable(str(value))}" for key, value in table.keys.items())]
    if "Thread" not in table.keys:
        hosts = {origin.host for origin in table.origins}
        processes = {(origin.host, origin.pid) for origin in table.origins}
        parts += [f"{len(hosts)} Hostnames", f"{len(processes)} Processes", f"{len(table.origins)} Threads"]
    return "".join(f"{part} | " for part in parts)


def _cells(table: Table, settings: AnalysisSettings) -> tuple[tuple[Column, ...], list[list[str]]]:
    """The columns of a table and the cells of its rows, the total last; names come first in each row."""
    shown = _columns(settings, with_errors=table.total.errors > 0)
    rows = [
        [
            formatting.shorten(formatting.printable(name), settings.max_name_size),
            *(column.text(calls, table.total) for column in shown),
        ]
        for name, calls in [*table.calls, (_TOTAL, table.total)]
    ]
    return shown, rows


def _text_table(table: Table, settings: AnalysisSettings) -> str:
    shown, rows = _cells(table, settings)
    hidden = [(len(rows) - 1, number) for number, column in enumerate(shown, start=1) if not column.in_total]
    return formatting.table(["Name", *(column.heading for column in shown)], rows, blank=hidden)


def _markdown_table(table: Table, settings: AnalysisSettings) -> str:
    shown, rows = _cells(table, settings)
    for number, column in enumerate(shown, start=1):
        if not column.in_total:
            rows[-1][number] = ""
    return formatting.markdown_table(["Name", *(column.heading for column in shown)], rows)


def _plain(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.2f}"


def _json_node(tables: list[Table], settings: AnalysisSettings) -> Any:
    nodes = [{**table.keys, "data": _json_data(table, settings)} for table in tables]
    return nodes if tables[0].keys else nodes[0]


def _json_data(table: Table, settings: AnalysisSettings) -> dict[str, dict[str, float]]:
    return {name: _json_calls(calls, settings) for name, calls in [*table.calls, (_TOTAL, table.total)]}


def _json_calls(calls: Calls, settings: AnalysisSettings) -> dict[str, float]:
    values: dict[str, float] = {
        "time": calls.time_ns,
        "self": calls.self_ns,
        "call": calls.calls,
        "min": calls.min_ns,
        "max": calls.max_ns,
    }
    if calls.errors:
        values["error"] = calls.errors
    for column in _columns(settings, with_errors=False):
        if column in columns.DISTRIBUTION:
            values[column.name] = column.value(calls, calls)
    return values
