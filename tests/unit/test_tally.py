from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator

import pytest

from iprof_py import backends
from iprof_py.analyses import columns, tally
from iprof_py.analyses.calls import Bucket, Calls, Origin
from iprof_py.analyses.tally import Row, Tally, tables_of
from iprof_py.errors import IprofError
from iprof_py.settings import AnalysisSettings

SETTINGS = AnalysisSettings(
    name="tally",
    output=None,
    backends=backends.DEFAULT,
    extended=False,
    max_name_size=80,
    format="text",
    sort="time",
    top=None,
    filter=None,
    columns=(),
    by="op",
    depth=None,
    base=None,
    threshold=None,
)
MAIN = Origin("host", 1, 1)
OTHER = Origin("host", 1, 2)


def calls(*durations_ns: int, errors: int = 0, self_ns: int | None = None) -> Calls:
    total_ns = sum(durations_ns)
    return Calls(
        calls=len(durations_ns) + errors,
        errors=errors,
        time_ns=total_ns,
        self_ns=total_ns if self_ns is None else self_ns,
        min_ns=min(durations_ns, default=0),
        max_ns=max(durations_ns, default=0),
        squares_ns2=sum(duration_ns**2 for duration_ns in durations_ns),
        histogram={Bucket(duration_ns, duration_ns): durations_ns.count(duration_ns) for duration_ns in durations_ns},
    )


def rows() -> Iterator[Row]:
    yield Row(MAIN, False, "aten::abs", "", calls(300, 500, self_ns=200))
    yield Row(MAIN, False, "aten::abs.out", "", calls(200, 400))
    yield Row(OTHER, False, "aten::abs", "", calls(100))
    yield Row(MAIN, True, "step", "", calls(1000, self_ns=100))


TALLY = Tally(tuple(rows()), 0, 0)


def test_calls_add_up() -> None:
    both = calls(10, 20) + calls(5, errors=2)
    assert (both.calls, both.errors, both.time_ns, both.min_ns, both.max_ns) == (5, 2, 35, 5, 20)
    assert both.average_ns == pytest.approx(35 / 3)


def test_calls_without_time_do_not_touch_minimum_and_maximum() -> None:
    assert (calls(errors=1) + calls(7)).min_ns == 7
    assert (calls(7) + calls(errors=1)).max_ns == 7


def test_distribution() -> None:
    many = calls(*range(1, 101))
    assert many.percentile_ns(50) == 50
    assert many.percentile_ns(99) == 99
    assert many.percentile_ns(100) == 100
    assert many.deviation_ns == pytest.approx(28.866, abs=0.001)
    assert calls().percentile_ns(50) == 0
    assert calls(5).deviation_ns == 0


def test_text() -> None:
    assert tally.to_text(tables_of(TALLY, SETTINGS), TALLY, SETTINGS) == (
        "BACKEND_PYTORCH | 1 Hostnames | 1 Processes | 2 Threads | \n"
        "\n"
        "         Name |   Time | Time(%) |  Self | Self(%) | Calls |  Average |   Min |   Max | \n"
        "    aten::abs |  900ns |  60.00% | 300ns |  33.33% |     3 | 300.00ns | 100ns | 500ns | \n"
        "aten::abs.out |  600ns |  40.00% | 600ns |  66.67% |     2 | 300.00ns | 200ns | 400ns | \n"
        "        Total | 1.50us | 100.00% | 900ns | 100.00% |     5 |                            \n"
        "\n"
        "SCOPES | 1 Hostnames | 1 Processes | 1 Threads | \n"
        "\n"
        " Name |   Time | Time(%) |  Self | Self(%) | Calls | Average |    Min |    Max | \n"
        " step | 1.00us | 100.00% | 100ns | 100.00% |     1 |  1.00us | 1.00us | 1.00us | \n"
        "Total | 1.00us | 100.00% | 100ns | 100.00% |     1 |                             \n"
        "\n"
    )


def test_errors_have_a_column_only_when_there_are_any() -> None:
    failed = Tally((Row(MAIN, False, "a", "", calls(errors=2)), Row(MAIN, False, "b", "", calls(10, errors=1))), 0, 3)
    lines = tally.to_text(tables_of(failed, SETTINGS), failed, SETTINGS).splitlines()
    assert lines[2].split("|")[-2].strip() == "Error"
    assert [cell.strip() for cell in lines[4].split("|")] == ["a", "", "", "", "", "2", "", "", "", "2", ""]


def test_a_share_of_nothing_is_nothing() -> None:
    instant = Tally((Row(MAIN, False, "a", "", calls(0)),), 0, 0)
    cells = tally.to_text(tables_of(instant, SETTINGS), instant, SETTINGS).splitlines()[3].split("|")
    assert [cell.strip() for cell in cells] == ["a", "0ns", "0.00%", "0ns", "0.00%", "1", "0.00ns", "0ns", "0ns", ""]


def test_ties_are_in_the_order_of_names() -> None:
    tied = Tally(tuple(Row(MAIN, False, name, "", calls(5)) for name in "bca"), 0, 0)
    (table,) = tables_of(tied, SETTINGS)
    assert [name for name, _ in table.calls] == ["a", "b", "c"]


@pytest.mark.parametrize("sort", [*columns.SORT_KEYS, "name"])
def test_sorting(sort: str) -> None:
    table = tables_of(TALLY, dataclasses.replace(SETTINGS, sort=sort))[0]
    first = {"self": "aten::abs.out"}.get(sort, "aten::abs")
    assert table.calls[0][0] == first


def test_top_keeps_the_total_of_all() -> None:
    table = tables_of(TALLY, dataclasses.replace(SETTINGS, top=1))[0]
    assert len(table.calls) == 1
    assert table.total.calls == 5


def test_a_filter_leaves_the_rest_out_of_the_total() -> None:
    tables = tables_of(TALLY, dataclasses.replace(SETTINGS, filter=re.compile(r"\.out$")))
    assert [table.total.calls for table in tables] == [2]


def test_extended_has_a_table_for_each_thread() -> None:
    tables = tables_of(TALLY, dataclasses.replace(SETTINGS, extended=True))
    assert [dict(table.keys) for table in tables] == [
        {"Hostname": "host", "Process": 1, "Thread": 1},
        {"Hostname": "host", "Process": 1, "Thread": 2},
        {"Hostname": "host", "Process": 1, "Thread": 1},
    ]


def test_json() -> None:
    document = json.loads(tally.to_json(tables_of(TALLY, SETTINGS), TALLY, SETTINGS))
    assert document["units"] == {"time": "ns", "size": "bytes"}
    expected = {"time": 900, "self": 300, "call": 3, "min": 100, "max": 500}
    assert document["host"]["6"]["data"]["aten::abs"] == expected
    assert document["host"]["6"]["data"]["Total"]["call"] == 5
    assert document["scopes"]["data"]["step"]["self"] == 100


def test_json_of_nothing() -> None:
    empty = Tally((), 0, 0)
    document = json.loads(tally.to_json(tables_of(empty, SETTINGS), empty, SETTINGS))
    assert set(document) == {"units", "unpaired"}


def test_csv_quotes_names() -> None:
    odd = Tally((Row(MAIN, False, 'a,"b"\nc', "", calls(10)),), 0, 0)
    settings = dataclasses.replace(SETTINGS, columns=("time", "calls"))
    assert tally.to_csv(tables_of(odd, settings), odd, settings) == (
        'kind,name,time_ns,calls\noperator,"a,""b""\nc",10,1\n'
    )


def test_unknown_columns_are_refused() -> None:
    assert [column.name for column in columns.parse("self, p99,self")] == ["self", "p99"]
    with pytest.raises(IprofError, match="unknown column 'p98'"):
        columns.parse("self,p98")
