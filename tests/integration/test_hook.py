"""The preloaded library: what it needs, and that it changes nothing for the program."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Iprof, run_in

from iprof_py import native


def needed_libraries(library: Path) -> set[str]:
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))


def test_the_hook_needs_lttng_and_libc_alone() -> None:
    needed = needed_libraries(native.find("libiprof_pytorch.so"))
    assert {re.sub(r"[-.].*", "", library) for library in needed} <= {"liblttng", "libc", "ld"}
    assert "liblttng-ust.so.1" in needed


def test_the_hook_is_never_unloaded() -> None:
    dynamic = subprocess.run(
        ["readelf", "-d", native.find("libiprof_pytorch.so")], capture_output=True, text=True, check=True
    ).stdout
    assert "NODELETE" in dynamic


@pytest.fixture
def caller(tmp_path: Path, compiled: Callable[..., Path]) -> Path:
    """A program that dlopens a neighbour which only its own RUNPATH, or its $ORIGIN, finds."""
    neighbour = compiled("neighbour.c", "libneighbour.so", "-shared", "-fPIC")
    program = compiled("caller.c", "caller", "-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN/below", "-ldl")
    below = program.parent / "below"
    below.mkdir(exist_ok=True)
    link = below / "libneighbour.so"
    if not link.exists():
        link.symlink_to(neighbour)
    return program


def test_dlopen_means_the_same_to_its_caller(iprof: Iprof, caller: Path) -> None:
    assert subprocess.run([caller], check=False, cwd="/").returncode == 42
    run = iprof("--", caller, cwd="/")
    assert run.status == 42, run.stderr


def test_a_path_with_spaces_and_colons(tmp_path: Path, torch_program: Path) -> None:
    home = tmp_path / "a home: with spaces"
    program = tmp_path / "a program"
    program.symlink_to(torch_program)
    run = run_in(home, "-j", "--", program, "10", "0")
    assert run.status == 0, run.stderr
    assert run.tally["aten::add.Tensor"]["call"] == 10


def test_the_hook_says_what_it_does_only_when_asked(iprof: Iprof, torch_program: Path) -> None:
    assert "iprof-hook" not in iprof("--", torch_program, "1", "0").stderr
    asked = iprof("--", torch_program, "1", "0", environment={"IPROF_HOOK_DEBUG": "1"}).stderr
    assert re.search(r"iprof-hook\[\d+\]: .*libtorch_cpu.so: attached, overload names known", asked)
