"""What the tally must show of real programs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from conftest import PROGRAMS, TORCH_PYTHON, Iprof, Run, calls_of, run_in


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_in(tmp_path_factory.mktemp("home"), "-j", "--", TORCH_PYTHON, PROGRAMS / "abs.py", "500")


def replay(recorded: Run, *arguments: str) -> str:
    return run_in(recorded.home, "-r", *arguments).stdout


def test_calls_of_nested_overloads_are_exact(recorded: Run) -> None:
    assert recorded.status == 0
    assert recorded.tally["aten::abs"]["call"] == 500
    assert recorded.tally["aten::abs.out"]["call"] == 500


def test_no_name_carries_the_overload_of_another(recorded: Run) -> None:
    names = set(recorded.tally)
    assert "SumBackward0" in names
    assert {name for name in names if "Backward" in name and "." in name} == set()
    overloads = {name.partition(".")[2] for name in names if "." in name}
    assert overloads <= {"out", "memory_format", "Scalar", "dim_IntList", "dtype", "int"}


def test_self_times_add_up_to_the_outermost_operators(recorded: Run, tmp_path: Path) -> None:
    tree = json.loads(_speedscope(recorded, tmp_path))
    total = recorded.tally["Total"]
    scopes = json.loads(recorded.stdout)["scopes"]["data"]
    weight = sum(profile["endValue"] for profile in tree["profiles"])
    # The tree's weight is that of its roots: the outermost operators, and the scopes with what is in them.
    assert weight == total["self"] + scopes["Total"]["self"]


def _speedscope(recorded: Run, directory: Path) -> str:
    output = directory / "tree.speedscope.json"
    done = run_in(recorded.home, "--analysis", "flamegraph", output)
    assert done.status == 0, done.stderr
    return output.read_text()


def test_scopes_have_a_table_of_their_own(recorded: Run) -> None:
    scopes = json.loads(recorded.stdout)["scopes"]["data"]
    assert scopes["outer"]["call"] == scopes["inner"]["call"] == 1
    assert scopes["inner"]["time"] + scopes["outer"]["self"] == scopes["outer"]["time"]
    assert "outer" not in recorded.tally


def test_text_has_the_known_heading_and_columns(recorded: Run) -> None:
    lines = replay(recorded).splitlines()
    assert lines[0] == "BACKEND_PYTORCH | 1 Hostnames | 1 Processes | 1 Threads | "
    assert lines[1] == ""
    header = [cell.strip() for cell in lines[2].split("|")]
    assert header == ["Name", "Time", "Time(%)", "Self", "Self(%)", "Calls", "Average", "Min", "Max", ""]
    assert any(line.startswith("SCOPES | ") for line in lines)


def test_a_second_analysis_is_the_same(recorded: Run) -> None:
    assert replay(recorded, "-j") == recorded.stdout
    assert replay(recorded, "-e") == replay(recorded, "-e")


def test_groups_have_all_calls_between_them(recorded: Run) -> None:
    for grouping in ("scope", "phase"):
        tables = json.loads(run_in(recorded.home, "-j", "--by", grouping).stdout)["host"]["6"]
        assert sum(table["data"]["Total"]["call"] for table in tables) == recorded.tally["Total"]["call"]
    backward = next(table["data"] for table in tables if table["Phase"] == "backward")
    assert "SumBackward0" in backward
    assert "aten::abs" not in backward


def test_percentiles_lie_between_minimum_and_maximum(recorded: Run) -> None:
    tables = json.loads(replay(recorded, "-j", "-e"))["host"]["6"]
    for row in tables[0]["data"].values():
        assert row["min"] <= row["p50"] <= row["p99"] <= row["max"]


def test_csv_and_markdown_have_every_operator(recorded: Run) -> None:
    names = set(recorded.tally) - {"Total"}
    lines = replay(recorded, "--format", "csv").splitlines()
    assert lines[0].startswith("kind,name,time_ns,")
    assert {line.split(",")[1] for line in lines[1:] if line.startswith("operator")} == names
    markdown = replay(recorded, "--format", "markdown", "--max-name-size", "-1")
    assert names <= {line.split(" | ")[0].removeprefix("| ") for line in markdown.splitlines()}


def test_filter_sort_and_top(recorded: Run) -> None:
    text = replay(recorded, "--filter", "^aten::", "--sort", "name", "--top", "2", "--columns", "calls")
    rows = [line.split("|") for line in text.splitlines() if "aten::" in line]
    assert [row[0].strip() for row in rows] == sorted(row[0].strip() for row in rows)
    assert len(rows) == 2
    assert len(rows[0]) == 3


def test_every_process_has_its_own_calls(iprof: Iprof) -> None:
    run = iprof("-j", "-e", "--", TORCH_PYTHON, PROGRAMS / "processes.py")
    assert run.status == 0, run.stderr
    parent, worker, spawned = map(int, run.stdout.splitlines()[0].split())
    calls = calls_of(run.threads, "aten::add.Tensor")
    assert calls == {parent: 2000, worker: 1000, spawned: 1000}


def test_a_killed_program_loses_nothing(iprof: Iprof) -> None:
    run = iprof("-j", "--", TORCH_PYTHON, PROGRAMS / "killed.py")
    assert run.status == 137
    assert run.tally["aten::neg"]["call"] == 5000


def test_the_profiler_sees_the_same_calls(iprof: Iprof, tmp_path: Path) -> None:
    output = tmp_path / "profiler.json"
    subprocess.run([TORCH_PYTHON, PROGRAMS / "training.py", output], check=True)
    profiled = json.loads(output.read_text())  # by names without overloads
    run = iprof("-j", "--max-name-size", "-1", "--", TORCH_PYTHON, PROGRAMS / "training.py")
    traced: dict[str, int] = {}
    scopes = json.loads(run.stdout)["scopes"]["data"]
    for name, row in {**run.tally, **scopes}.items():
        bare = name.partition(".")[0] if name.startswith("aten::") else name
        traced[bare] = traced.get(bare, 0) + row["call"]
    traced.pop("Total")
    assert traced == profiled


def test_torchrun_ranks_are_processes_of_their_own(iprof: Iprof) -> None:
    torchrun = TORCH_PYTHON.parent / "torchrun"
    run = iprof("-j", "-e", "--", torchrun, "--nproc-per-node", "2", PROGRAMS / "reducing.py")
    assert run.status == 0, run.stderr
    assert list(calls_of(run.threads, "c10d::allreduce_").values()) == [10, 10]
    # gloo's own scopes begin on one thread and end on another.
    assert json.loads(run.stdout.splitlines()[-1])["unpaired"] == {"entries": 0, "exits": 0}


def test_a_program_linked_with_libtorch(iprof: Iprof, torch_program: Path) -> None:
    run = iprof("-j", "--", torch_program, "100", "7")
    assert run.status == 7
    assert run.tally["aten::add.Tensor"]["call"] == 100
