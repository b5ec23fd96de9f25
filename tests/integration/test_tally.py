"""What the tally must show of real programs."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import bt2
import pytest
from conftest import PROGRAMS, TORCH, TORCH_PYTHON, Iprof, Run, calls_of, run_in


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


def test_self_times_add_up_to_the_outermost_operators(recorded: Run) -> None:
    tables = json.loads(replay(recorded, "-j", "-e"))["host"]["6"]
    assert self_ns(tables) == outermost_ns(recorded.traces[0])


def self_ns(tables: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int], int]:
    """The self time of all operators of each thread."""
    return {(table["Process"], table["Thread"]): table["data"]["Total"]["self"] for table in tables}


def outermost_ns(trace: Path) -> dict[tuple[int, int], int]:
    """The time of each thread's outermost operators, from the events themselves.

    Programs of other runs, which the machine's daemon records too, are left out.
    """
    directories = [str(path.parent) for path in trace.glob("**/metadata")]  # one for each user
    run_id = json.loads(next(trace.glob("*/iprof_metadata.json")).read_text())["run_id"]
    own: set[int] = set()
    depths: Counter[tuple[int, int]] = Counter()
    total_ns: Counter[tuple[int, int]] = Counter()
    for message in bt2.TraceCollectionMessageIterator(directories):
        if not isinstance(message, bt2._EventMessageConst):
            continue
        context = message.event.common_context_field
        thread = (int(context["vpid"]), int(context["vtid"]))
        if message.event.name.endswith(":process") and message.event["run_id"] == run_id:
            own.add(thread[0])
        if thread[0] not in own or ":op_" not in message.event.name:
            continue
        now_ns = message.default_clock_snapshot.ns_from_origin
        if message.event.name.endswith(":op_entry"):
            total_ns[thread] -= now_ns if depths[thread] == 0 else 0
            depths[thread] += 1
        else:
            depths[thread] -= 1
            total_ns[thread] += now_ns if depths[thread] == 0 else 0
    assert set(depths.values()) == {0}
    return dict(total_ns)


def test_the_tree_has_the_self_time_of_operators_and_scopes(recorded: Run, tmp_path: Path) -> None:
    output = tmp_path / "tree.speedscope.json"
    done = run_in(recorded.home, "--analysis", "flamegraph", output)
    assert done.status == 0, done.stderr
    weight_ns = sum(profile["endValue"] for profile in json.loads(output.read_text())["profiles"])
    scopes = json.loads(recorded.stdout)["scopes"]["data"]
    assert weight_ns == recorded.tally["Total"]["self"] + scopes["Total"]["self"]


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
    assert len({table["Thread"] for table in run.threads if table["Process"] == parent}) >= 2
    assert self_ns(run.threads) == outermost_ns(run.traces[0])


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


def test_a_shell_script_around_the_program(iprof: Iprof, tmp_path: Path) -> None:
    wrapper = tmp_path / "a wrapper"
    wrapper.write_text(f'#!/bin/sh\n"{TORCH_PYTHON}" "$@"\nexit $(($? + 4))\n')
    wrapper.chmod(0o755)
    program = tmp_path / "a program.py"
    program.write_text("import sys, torch; torch.abs(torch.ones(3)); sys.exit(len(sys.argv))")
    run = iprof("-j", "--", wrapper, program, "word")
    assert (run.status, run.messages) == (6, [f"Trace location: {run.traces[0]}"])
    assert run.tally["aten::abs.out"]["call"] == 1


@pytest.mark.parametrize(("command", "path"), [("python3", "bin"), ("bin/python3", "/usr/bin:/bin")])
def test_the_interpreter_decides_whose_torch(iprof: Iprof, command: str, path: str) -> None:
    search = os.pathsep.join([str(TORCH / path), os.environ["PATH"]]) if path == "bin" else path
    program = "import torch; torch.abs(torch.ones(3)); print(torch.__file__, torch.__version__)"
    environment = {"PATH": search}
    run = iprof("--analysis", "tally", "-j", "--", command, "-c", program, environment=environment, cwd=TORCH)
    assert run.status == 0, run.stderr
    file, version = run.stdout.splitlines()[0].rsplit(" ", 1)
    assert Path(file).resolve().is_relative_to((TORCH / "lib").resolve())
    assert run.tally["aten::abs"]["call"] == 1
    metadata = json.loads(next(run.traces[0].glob("*/iprof_metadata.json")).read_text())
    assert metadata["torch_version"] == version


def test_a_program_linked_with_libtorch(iprof: Iprof, torch_program: Path) -> None:
    run = iprof("-j", "--", torch_program, "100", "7")
    assert run.status == 7
    assert run.tally["aten::add.Tensor"]["call"] == 100
