"""The timeline, read back by Perfetto's own classes and as JSON, against the tally of the same trace."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import PROGRAMS, TORCH_PYTHON, Run, run_in
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto

NAMES = ['quote " and \\ backslash', "new\nline", "[bracket]", "é", "", "x" * 10_000, "semi;colon|pipe,comma"]


@dataclass(frozen=True)
class Slice:
    name: str
    category: str
    track: int
    begin_ns: int
    end_ns: int
    depth: int

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.begin_ns


@pytest.fixture(scope="module", params=["training.py", "odd_scopes.py"])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    program = PROGRAMS / str(request.param)
    return run_in(tmp_path_factory.mktemp("home"), "-j", "--python-log", "--", TORCH_PYTHON, program)


def timeline(recorded: Run, name: str) -> Path:
    output = recorded.home / name
    run = run_in(recorded.home, "-l", output)
    assert run.status == 0, run.stderr
    return output


def packets(path: Path) -> Any:
    trace = perfetto.Trace()
    trace.ParseFromString(path.read_bytes())
    return trace.packet


def slices(path: Path) -> Iterator[Slice]:
    """The slices of a Perfetto trace; fails where ends and begins of a track do not match."""
    names: dict[int, str] = {}
    categories: dict[int, str] = {}
    for packet in packets(path):
        names.update({name.iid: name.name for name in packet.interned_data.event_names})
        categories.update({category.iid: category.name for category in packet.interned_data.event_categories})
    events = [packet for packet in packets(path) if packet.HasField("track_event")]
    stacks: dict[int, list[Any]] = defaultdict(list)
    for packet in sorted(events, key=lambda packet: packet.timestamp):
        event = packet.track_event
        if event.type == event.TYPE_SLICE_BEGIN:
            stacks[event.track_uuid].append(packet)
        elif event.type == event.TYPE_SLICE_END:
            begun = stacks[event.track_uuid].pop()
            yield Slice(
                names[begun.track_event.name_iid],
                categories[begun.track_event.category_iids[0]],
                event.track_uuid,
                begun.timestamp,
                packet.timestamp,
                len(stacks[event.track_uuid]),
            )
    assert not any(stacks.values())


def expected(recorded: Run) -> dict[str, tuple[int, int]]:
    """Calls and nanoseconds of each operator and scope, by the tally."""
    scopes = json.loads(recorded.stdout)["scopes"]["data"]
    rows = [*recorded.tally.items(), *scopes.items()]
    return {name: (row["call"], row["time"]) for name, row in rows if name != "Total"}


def test_slices_are_those_of_the_tally(recorded: Run) -> None:
    sums: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for each in slices(timeline(recorded, "a.pftrace")):
        calls, time_ns = sums[each.name]
        sums[each.name] = calls + 1, time_ns + each.duration_ns
    assert sums == expected(recorded)


def test_categories_tell_kinds_apart(recorded: Run) -> None:
    found = list(slices(timeline(recorded, "a.pftrace")))
    assert {each.category for each in found if each.name.startswith("aten::")} == {"operator"}
    assert {each.category for each in found if each.name in NAMES or "#" in each.name} <= {"scope"}
    assert {each.category for each in found if each.name == "AddmmBackward0"} <= {"backward"}


def test_tracks_have_readable_names(recorded: Run) -> None:
    descriptors = [packet.track_descriptor for packet in packets(timeline(recorded, "a.pftrace"))]
    processes = {each.process.process_name for each in descriptors if each.HasField("process")}
    threads = {each.thread.thread_name for each in descriptors if each.HasField("thread")}
    assert len(processes) == 1
    assert ".py" in processes.pop()
    assert "python" in threads


def test_the_clock_is_declared(recorded: Run) -> None:
    first = next(iter(packets(timeline(recorded, "a.pftrace"))))
    assert first.trace_packet_defaults.timestamp_clock_id == 1
    assert first.clock_snapshot.primary_trace_clock == 1
    assert first.sequence_flags & 1
    start_s = json.loads(next(recorded.home.glob("**/iprof_metadata.json")).read_text())["start"]
    assert str(start_s).startswith("20")
    assert first.timestamp > 1_700_000_000 * 10**9


def test_a_second_timeline_is_the_same(recorded: Run) -> None:
    for ending in ("pftrace", "json", "json.gz"):
        assert timeline(recorded, f"a.{ending}").read_bytes() == timeline(recorded, f"b.{ending}").read_bytes()
    assert gzip.decompress((recorded.home / "a.json.gz").read_bytes()) == (recorded.home / "a.json").read_bytes()


def chrome_slices(document: dict[str, Any]) -> Iterator[tuple[str, str | None, float]]:
    """Name, parent's name and duration in microseconds of each complete event of a Chrome trace."""
    threads = defaultdict(list)
    for event in document["traceEvents"]:
        if event["ph"] == "X" and event.get("cat") in ("operator", "backward", "cpu_op"):
            threads[event["pid"], event["tid"]].append(event)
    for events in threads.values():
        open_events: list[Any] = []
        for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
            while open_events and open_events[-1]["ts"] + open_events[-1]["dur"] <= event["ts"]:
                open_events.pop()
            name = event["name"]
            yield name, open_events[-1]["name"] if open_events else None, event["dur"]
            open_events.append(event)


def test_chrome_slices_are_those_of_the_tally(recorded: Run) -> None:
    document = json.loads(timeline(recorded, "a.json").read_text())
    found = chrome_slices(document)
    counts = Counter(name for name, _, _ in found)
    assert counts == {name: row["call"] for name, row in recorded.tally.items() if name != "Total"}
    assert {event["ph"] for event in document["traceEvents"]} <= set("XMbei")
    assert {event["name"] for event in document["traceEvents"] if event["ph"] == "M"} == {"process_name", "thread_name"}


def test_chrome_nests_as_the_profiler_does(recorded: Run, tmp_path: Path) -> None:
    if not _is_training(recorded):
        pytest.skip("odd scopes are no program for the profiler")
    output = tmp_path / "profiler.json"
    subprocess.run([TORCH_PYTHON, PROGRAMS / "training.py", tmp_path / "calls.json", output], check=True)
    theirs = Counter((name, parent) for name, parent, _ in chrome_slices(json.loads(output.read_text())))
    ours: Counter[tuple[str, str | None]] = Counter()
    for name, parent, _ in chrome_slices(json.loads(timeline(recorded, "a.json").read_text())):
        ours[_bare(name), _bare(parent) if parent else None] += 1
    assert ours == theirs


def _is_training(recorded: Run) -> bool:
    return "AddmmBackward0" in recorded.tally


def _bare(name: str) -> str:
    return name.partition(".")[0] if name.startswith("aten::") else name


def test_odd_names_come_through(recorded: Run) -> None:
    if _is_training(recorded):
        pytest.skip("it has no odd names")
    perfetto_names = {each.name for each in slices(timeline(recorded, "a.pftrace"))}
    chrome_names = {event["name"] for event in json.loads(timeline(recorded, "a.json").read_text())["traceEvents"]}
    assert set(NAMES) <= perfetto_names
    assert set(NAMES) <= chrome_names
    assert set(NAMES) <= set(json.loads(recorded.stdout)["scopes"]["data"])
    lines = run_in(recorded.home, "-t").stdout.splitlines()
    assert any('name: "quote \\" and \\\\ backslash"' in line for line in lines)
    assert any('name: "new\\nline"' in line for line in lines)
    table = csv.reader(run_in(recorded.home, "--format", "csv").stdout.splitlines(keepends=True))
    assert set(NAMES) <= {row[1] for row in table if row[0] == "scope"}
    folded = recorded.home / "names.folded"
    run_in(recorded.home, "--analysis", "flamegraph", folded)
    frames = {line.rpartition(" ")[0].split(";")[0] for line in folded.read_text().splitlines()}
    assert {"new\\nline", "semi,colon|pipe,comma", "é", "", "x" * 10_000} <= frames
    text = run_in(recorded.home, "--max-name-size", "20").stdout
    assert any(line.startswith("xxxxxxx[...]xxxxxxxx |") for line in text.splitlines())
    assert " new\\nline |" in text


def test_a_scope_that_ends_elsewhere_has_a_track_of_its_own(recorded: Run) -> None:
    if _is_training(recorded):
        pytest.skip("it has no such scope")
    found = list(slices(timeline(recorded, "a.pftrace")))
    (scope,) = (each for each in found if each.name == "async")
    assert {each.name for each in found if each.track == scope.track} <= {"async", "outer"}
    phases = [
        event["ph"]
        for event in json.loads(timeline(recorded, "a.json").read_text())["traceEvents"]
        if event["name"] == "async"
    ]
    assert phases == ["b", "e"]


def test_a_full_disk_leaves_no_half_file(recorded: Run, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", small], check=False).returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        run = run_in(recorded.home, "-l", small / "out.pftrace")
        assert run.status == 6
        assert run.messages[-1] == f"error: cannot write {small / 'out.pftrace'}: No space left on device"
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)
