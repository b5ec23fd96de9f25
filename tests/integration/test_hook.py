"""The preloaded library: what it needs, and that it changes nothing for the program."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import REPOSITORY, Iprof, run_in

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


Asking = Callable[[str], Path]


@pytest.fixture
def asking(compiled: Callable[..., Path]) -> Asking:
    """Make a program whose library dlopens a neighbour of a name by the library's own RUNPATH."""

    def build(name: str) -> Path:
        neighbour = compiled("neighbour.c", f"lib{name}.so", "-shared", "-fPIC")
        below = neighbour.parent / "neighbours"
        below.mkdir(exist_ok=True)
        link = below / neighbour.name
        if not link.exists():
            link.symlink_to(neighbour)
        tags = ("-Wl,--enable-new-dtags", "-ldl")
        named = f'-DNEIGHBOUR="{neighbour.name}"'
        place = "-Wl,-rpath,$ORIGIN/neighbours"
        library = compiled("asker.c", f"libasker-{name}.so", "-shared", "-fPIC", named, place, *tags)
        own = ("-Wl,-rpath,$ORIGIN", f"-L{library.parent}", f"-lasker-{name}")
        return compiled("asking.c", f"asking-{name}", *own, *tags)

    return build


@pytest.mark.parametrize("name", ["neighbour", "torch_neighbour"])
def test_a_library_finds_its_neighbours(iprof: Iprof, asking: Asking, name: str) -> None:
    program = asking(name)
    assert subprocess.run([program], check=False, cwd="/").returncode == 42
    assert iprof("--", program, cwd="/").status == 42


@pytest.mark.xfail(strict=True, reason="the hook looks for names that mention torch from its own place first")
def test_a_librarys_neighbour_comes_before_the_systems(
    iprof: Iprof, asking: Asking, own_machine: list[str], compiled: Callable[..., Path], tmp_path: Path
) -> None:
    program = asking("torch_neighbour")
    other = compiled("neighbour.c", "other.so", "-shared", "-fPIC", "-DANSWER=13")
    (tmp_path / "system").mkdir()
    (tmp_path / "system" / "libtorch_neighbour.so").symlink_to(other)
    subprocess.run(["ldconfig", "-C", tmp_path / "cache", tmp_path / "system"], check=True, capture_output=True)
    before = [*own_machine, "sh", "-c", f'mount --bind "{tmp_path}/cache" /etc/ld.so.cache && exec "$@"', "sh"]
    assert subprocess.run([*before, program], check=False).returncode == 42
    assert iprof("--", program, before=before).status == 42


def test_an_installation_in_an_odd_place(tmp_path: Path, torch_program: Path) -> None:
    place = tmp_path / "an installation: with spaces"
    shutil.copytree(REPOSITORY / "iprof_py", place / "iprof_py", ignore=shutil.ignore_patterns("_native"))
    (place / "iprof_py/_native").symlink_to(native.find("libiprof_pytorch.so").parent)
    # Without site, whose .pth files would import the installation under test instead.
    program = (
        f"import sys; sys.path[:0] = {[str(place), *sys.path]!r}\n"
        "import iprof_py; from iprof_py.cli import main; print(list(iprof_py.__path__), flush=True); main()"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program, "-j", "--", torch_program, "10", "0"],
        env={**os.environ, "THAPI_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    path, tally = done.stdout.splitlines()
    assert path == f"['{place}/iprof_py']"
    assert json.loads(tally)["host"]["6"]["data"]["aten::add.Tensor"]["call"] == 10


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
