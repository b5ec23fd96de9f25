"""Traces that iprof-py did not record: THAPI's own, and those of several hosts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PROGRAMS, run_in


@pytest.fixture(scope="module")
def trace(compiled: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace as THAPI leaves it: events of two fields, its metadata file, and nothing of ours."""
    program = compiled("thapi.c", "thapi", f"-I{PROGRAMS}", "-llttng-ust", "-ldl")
    output = tmp_path_factory.mktemp("thapi") / "trace"
    home = output.parent
    run_in(home, "--no-analysis", "--trace-output", output, "--", "env", "-u", "LD_PRELOAD", program)
    for file in output.glob("**/iprof_metadata.json"):
        file.unlink()
    return output


def test_the_tally(trace: Path) -> None:
    run = run_in(trace, "-j", "-r", trace)
    assert run.status == 0, run.stderr
    assert {name: row["call"] for name, row in run.tally.items()} == {"aten::abs": 2, "aten::abs.out": 3, "Total": 5}
    assert json.loads(run.stdout)["unpaired"] == {"entries": 1, "exits": 0}


def test_every_analysis_reads_it(trace: Path, tmp_path: Path) -> None:
    lines = run_in(trace, "-t", "-r", trace).stdout.splitlines()
    assert len(lines) == 11
    assert lines[0].endswith('lttng_ust_pytorch:op_entry: { name: "aten::abs", overload_name: "", scope: 0 }')
    assert "|   aten::abs.out\n" in run_in(trace, "-r", trace, "--analysis", "tree").stdout
    assert run_in(trace, "-l", tmp_path / "out.json", "-r", trace).status == 0
    slices = [event for event in json.loads((tmp_path / "out.json").read_text())["traceEvents"] if event["ph"] == "X"]
    assert sorted(event["name"] for event in slices) == ["aten::abs"] * 3 + ["aten::abs.out"] * 3
    assert [event["name"] for event in slices if "unpaired" in event.get("args", {})] == ["aten::abs"]


def test_hosts_merge(trace: Path, tmp_path: Path) -> None:
    merged = tmp_path / "merged"
    (host,) = (path for path in trace.iterdir() if path.is_dir())
    for name in ("first", "second"):
        shutil.copytree(host, merged / name)
    metadata = next((merged / "second").glob("**/metadata"))
    content = metadata.read_bytes()
    other = host.name[:-1] + ("x" if host.name[-1] != "x" else "y")
    assert f'hostname = "{host.name}"'.encode() in content
    metadata.write_bytes(content.replace(f'"{host.name}"'.encode(), f'"{other}"'.encode()))
    run = run_in(tmp_path, "-r", merged)
    assert run.stdout.startswith("BACKEND_PYTORCH | 2 Hostnames | 2 Processes | 2 Threads | ")
    assert run_in(tmp_path, "-j", "-r", merged).tally["aten::abs.out"]["call"] == 6
    run_in(tmp_path, "-l", tmp_path / "out.json", "-r", merged)
    events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    assert len({event["pid"] for event in events}) == 2
