"""Python's log records in the trace, and a program that does not notice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PROGRAMS, TORCH_PYTHON, Iprof, Run, run_in

PROGRAM = PROGRAMS / "logging_program.py"


def records(run: Run) -> list[str]:
    return [line for line in run.stdout.splitlines() if "lttng_python:event" in line]


@pytest.mark.parametrize("arguments", [[], ["configured"]])
def test_the_program_logs_as_without_us(iprof: Iprof, arguments: list[str]) -> None:
    alone = subprocess.run([TORCH_PYTHON, PROGRAM, *arguments], capture_output=True, text=True, check=True)
    run = iprof("--no-analysis", "--python-log", "--", TORCH_PYTHON, PROGRAM, *arguments)
    own = "".join(line for line in run.stderr.splitlines(keepends=True) if not line.startswith("iprof-py: "))
    assert own == alone.stderr


def test_what_the_program_logs_is_recorded(iprof: Iprof) -> None:
    run = iprof("-t", "--python-log", "--", TORCH_PYTHON, PROGRAM, "configured")
    lines = records(run)
    assert [line.partition("msg: ")[2].partition(", logger_name")[0] for line in lines] == [
        '"before any configuration"',
        '"epoch 0"',
        '"odd: wörld \\e ? \\n end"',
        '"from a thread"',
    ]
    threads = [line.partition("vtid: ")[2].partition(" ")[0] for line in lines]
    assert len(set(threads[:3])) == 1
    assert threads[3] != threads[0]
    assert 'logger_name: "train", int_loglevel: 20' in lines[1]


def test_the_level_is_a_filter(iprof: Iprof) -> None:
    run = iprof("-t", "--python-log", "ERROR", "--", TORCH_PYTHON, PROGRAM, "configured")
    assert len(records(run)) == 1


def test_without_the_option_nothing_is_recorded(iprof: Iprof) -> None:
    assert records(iprof("-t", "--", TORCH_PYTHON, PROGRAM)) == []


def test_records_are_instant_events_of_the_timeline(iprof: Iprof, tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    iprof("-l", output, "--python-log", "--", TORCH_PYTHON, PROGRAM, "configured")
    events = [event for event in json.loads(output.read_text())["traceEvents"] if event.get("cat") == "log"]
    assert [event["name"] for event in events][:2] == ["before any configuration", "epoch 0"]
    assert events[1]["args"] == {"logger": "train", "level": "INFO"}
    assert {event["ph"] for event in events} == {"i"}


def test_the_users_own_sitecustomize_runs(iprof: Iprof, tmp_path: Path) -> None:
    # iprof-py is a Python program too, and has no run id.
    (tmp_path / "sitecustomize.py").write_text("import os\nif 'IPROF_RUN_ID' in os.environ: print('mine')\n")
    program = "import sys, sitecustomize; print(sitecustomize.__file__); print('lttngust' in sys.modules)"
    command = ["--no-analysis", "--python-log", "--", sys.executable, "-c", program]
    run = run_in(tmp_path, *command, environment={"PYTHONPATH": str(tmp_path)})
    assert run.stdout.splitlines() == ["mine", str(tmp_path / "sitecustomize.py"), "True"]
