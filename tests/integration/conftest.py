"""Runs iprof-py as a user does, on real programs, with a trace home of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
IPROF = Path(sys.executable).parent / "iprof-py"
TORCH_PYTHON = REPOSITORY / ".venv-torch/bin/python"
TORCH = TORCH_PYTHON.parent.parent


@dataclass(frozen=True)
class Run:
    """A finished iprof-py."""

    status: int
    stdout: str
    stderr: str
    home: Path

    @property
    def traces(self) -> list[Path]:
        """The traces in the run's home, oldest first."""
        return sorted((self.home / "thapi-traces").glob("thapi*"))

    @property
    def messages(self) -> list[str]:
        """What iprof-py itself said, without its name."""
        prefix = "iprof-py: "
        return [line.removeprefix(prefix) for line in self.stderr.splitlines() if line.startswith(prefix)]

    @property
    def tally(self) -> dict[str, Any]:
        """The operators of a JSON tally on stdout."""
        data: dict[str, Any] = json.loads(self.stdout.splitlines()[-1])["host"]["6"]["data"]
        return data

    @property
    def threads(self) -> list[dict[str, Any]]:
        """The tables of an extended JSON tally on stdout."""
        tables: list[dict[str, Any]] = json.loads(self.stdout.splitlines()[-1])["host"]["6"]
        return tables


Iprof = Callable[..., Run]


def run_in(
    home: Path,
    *arguments: str | Path,
    environment: Mapping[str, str] | None = None,
    before: Sequence[str] = (),
    **settings: Any,
) -> Run:
    """Run iprof-py with its traces in ``home``, started by the command ``before``.

    Further settings are those of subprocess.run.
    """
    variables = {**os.environ, "THAPI_HOME": str(home), **(environment or {})}
    command = [*before, str(IPROF), *map(str, arguments)]
    settings = {"timeout": 120, "capture_output": True, "text": True, "errors": "replace", **settings}
    done = subprocess.run(command, env=variables, check=False, **settings)
    return Run(done.returncode, done.stdout, done.stderr, home)


@pytest.fixture
def iprof(tmp_path: Path) -> Iprof:
    """Run iprof-py with a trace home of the test's own."""

    def run(*arguments: str | Path, **settings: Any) -> Run:
        return run_in(tmp_path, *arguments, **settings)

    return run


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compile a C or C++ program of the programs' directory, once."""
    directory = tmp_path_factory.mktemp("compiled")

    def build(source: str, output: str, *flags: str) -> Path:
        target = directory / output
        if not target.exists():
            compiler = "g++" if source.endswith(".cpp") else "gcc"
            subprocess.run([compiler, "-o", target, PROGRAMS / source, *flags], check=True)
        return target

    return build


@pytest.fixture(scope="session")
def torch_program(compiled: Callable[..., Path]) -> Path:
    """A C++ program, linked with libtorch, that adds as often as its first argument says."""
    torch = next((TORCH / "lib").glob("python3*/site-packages/torch"))
    include = torch / "include"
    return compiled(
        "adder.cpp",
        "adder",
        "-std=c++20",
        *(f"-I{path}" for path in (include, include / "torch/csrc/api/include")),
        *(f"-L{torch / 'lib'}", f"-Wl,-rpath,{torch / 'lib'}"),
        *("-ltorch", "-ltorch_cpu", "-lc10"),
    )


@pytest.fixture
def own_machine() -> list[str]:
    """What starts a command where LTTng has nothing yet, and where nobody else's runs and daemons are in reach."""
    places = "mount -t tmpfs none /run && mount -t tmpfs none /dev/shm"
    if subprocess.run(["unshare", "-m", "sh", "-c", places], capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system can be mounted here")
    return ["unshare", "-m", "sh", "-c", f'{places} && exec "$@"', "sh"]


def companions(namespace: str) -> set[int]:
    """The living processes that see the file systems of a namespace, as ``readlink /proc/self/ns/mnt`` names it."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str((process / "ns/mnt").readlink()) == namespace:
                found.add(int(process.name))
    return found


def calls_of(tables: Sequence[Mapping[str, Any]], name: str) -> dict[int, int]:
    """The calls of an operator by process."""
    calls: dict[int, int] = {}
    for table in tables:
        if name in table["data"]:
            calls[table["Process"]] = calls.get(table["Process"], 0) + table["data"][name]["call"]
    return calls


def path_without(program: str, directory: Path) -> str:
    """A PATH that has everything but one program."""
    directory.mkdir()
    for entry in os.environ["PATH"].split(os.pathsep):
        for file in Path(entry).glob("*"):
            link = directory / file.name
            if file.name != program and not link.exists():
                link.symlink_to(file)
    return str(directory)
