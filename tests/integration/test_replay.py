"""Saved traces: whole, damaged, and none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import PROGRAMS, Run, run_in

from iprof_py import ctf


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, torch_program: Path) -> Run:
    return run_in(tmp_path_factory.mktemp("home"), "-j", "--", torch_program, "20000", "0")


@pytest.fixture
def copy(recorded: Run, tmp_path: Path) -> Path:
    target = tmp_path / "copy"
    shutil.copytree(recorded.traces[0], target)
    return target


def largest_stream(trace: Path) -> Path:
    (directory,) = {path.parent for path in trace.glob("**/metadata")}
    return max(ctf.stream_files(directory), key=lambda path: path.stat().st_size)


def test_the_newest_trace_is_the_default(recorded: Run) -> None:
    for arguments in (["-j"], ["-r", "-j"], ["--analysis", "-j"], ["--analysis", "tally", "-j"]):
        run = run_in(recorded.home, *arguments)
        assert run.stdout == recorded.stdout
        assert run.messages == [f"Trace location: {recorded.traces[-1]}"]


def test_a_cut_stream_is_read_as_far_as_it_goes(recorded: Run, copy: Path) -> None:
    stream = largest_stream(copy)
    with stream.open("r+b") as file:
        file.truncate(stream.stat().st_size - 1000)
    run = run_in(copy.parent, "-j", "-r", copy)
    assert run.status == 0
    calls = run.tally["aten::add.Tensor"]["call"]
    assert 0 < calls < recorded.tally["aten::add.Tensor"]["call"]
    assert any("is damaged: the last" in message for message in run.messages)


def test_what_is_no_packet_is_left_out(recorded: Run, copy: Path) -> None:
    with largest_stream(copy).open("ab") as file:
        file.write(b"no packet" * 1000)
    run = run_in(copy.parent, "-j", "-r", copy)
    assert run.status == 0
    assert run.tally == recorded.tally
    assert any("the last 9000 of its" in message for message in run.messages)


@pytest.mark.parametrize("content", [b"", b"random bytes" * 100])
def test_a_trace_without_its_description(copy: Path, content: bytes) -> None:
    next(copy.glob("**/metadata")).write_bytes(content)
    run = run_in(copy.parent, "-r", copy)
    assert run.status == 5
    assert len(run.messages) == 2
    assert run.messages[1].startswith("error: the trace ")


def test_a_wrong_event_in_the_middle(copy: Path) -> None:
    stream = largest_stream(copy)
    with stream.open("r+b") as file:
        file.seek(200)
        file.write(b"\xff" * 64)
    run = run_in(copy.parent, "-j", "-r", copy)
    assert run.status in (0, 5)
    assert any("damaged" in message or message.startswith("error: ") for message in run.messages)


def test_no_trace(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path, text in (
        (tmp_path / "missing", "does not exist"),
        (tmp_path / "empty", "holds no trace"),
        (PROGRAMS / "abs.py", "is not a directory"),
    ):
        run = run_in(tmp_path, "-r", path)
        assert run.status == 5
        assert len(run.messages) == 1
        assert text in run.messages[0]
    run = run_in(tmp_path, "-r")
    assert run.status == 5
    assert run.messages == [
        f"error: there is no trace in {tmp_path}/thapi-traces: record one with `iprof-py -- COMMAND`"
    ]


def test_comparing_a_trace_with_itself(recorded: Run) -> None:
    (trace,) = recorded.traces
    run = run_in(recorded.home, "--format", "json", "--threshold", "0", "--analysis", "compare", trace, trace)
    assert run.status == 0
    document = json.loads(run.stdout)
    assert document["total"]["base"] == document["total"]["new"]
    assert document["total"]["base"]["calls"] == recorded.tally["Total"]["call"]


def test_comparing_finds_what_became_slower(recorded: Run, torch_program: Path) -> None:
    (trace,) = recorded.traces
    other = recorded.home / "other"
    run_in(recorded.home, "--no-analysis", "--trace-output", other, "--", torch_program, "100000", "0")
    run = run_in(recorded.home, "--threshold", "50", "--format", "csv", "--analysis", "compare", trace, other)
    assert run.status == 1
    assert "over the threshold of 50 %" in run.messages[-1]
    assert run.stdout.splitlines()[1].startswith("aten::add.Tensor,20000,100000,")


def test_the_tree_and_the_flame_graph_have_all_self_time(recorded: Run, tmp_path: Path) -> None:
    output = tmp_path / "tree.folded"
    run = run_in(recorded.home, "--analysis", "flamegraph", output)
    assert run.status == 0
    weights = dict(line.rsplit(" ", 1) for line in output.read_text().splitlines())
    assert sum(map(int, weights.values())) == recorded.tally["Total"]["self"]
    assert int(weights["aten::add.Tensor"]) == recorded.tally["aten::add.Tensor"]["self"]
    tree = run_in(recorded.home, "--analysis", "tree").stdout
    assert "| aten::ones\n" in tree
    assert "|   aten::empty.memory_format\n" in tree
    shallow = run_in(recorded.home, "--analysis", "tree", "--depth", "1").stdout
    assert "aten::empty" not in shallow
