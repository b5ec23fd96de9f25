from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from iprof_py.errors import ExitStatus, IprofError
from iprof_py.torch_locate import (
    LIBRARY_VARIABLE,
    NoTorch,
    Torch,
    UnknownTorch,
    check_version,
    find_interpreter,
    locate,
)


@pytest.mark.parametrize(
    "version",
    ["1.13.1", "2.13.0+cpu", "2.3.0a0+git1234567", "2.4.0.dev20240501+cu121", "2.1.0a0+32f93b1.nv23.10", "2.14.1"],
)
def test_validated_versions_are_silent(version: str) -> None:
    check = check_version(version)
    assert check.preload
    assert check.warning is None


@pytest.mark.parametrize("version", ["1.11.0", "1.12.1+cu102", "2.15.0", "3.0.0.dev20300101"])
def test_other_versions_warn_and_are_recorded(version: str) -> None:
    check = check_version(version)
    assert check.preload
    assert check.warning == f"PyTorch {version} is untested: the validated range is 1.13 to 2.14"


@pytest.mark.parametrize("version", ["1.10.2", "1.8.0+cpu", "0.4.1"])
def test_old_versions_are_not_recorded(version: str) -> None:
    check = check_version(version)
    assert not check.preload
    assert check.warning is not None
    assert "RecordScope has fewer members" in check.warning


def test_a_version_that_is_none() -> None:
    check = check_version("built by hand")
    assert check.preload
    assert check.warning == "cannot tell which PyTorch 'built by hand' is; the validated range is 1.13 to 2.14"
    assert check_version(None).warning is None


def executable(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def python(tmp_path: Path) -> Path:
    return executable(tmp_path / "with space" / "python3.11")


def test_a_python_is_found_through_path(python: Path) -> None:
    environment = {"PATH": str(python.parent)}
    assert find_interpreter(["python3.11", "x.py"], environment) == (str(python),)
    assert find_interpreter([str(python)], environment) == (str(python),)
    assert find_interpreter(["python3.12"], environment) is None


def test_flags_that_decide_imports_are_kept(python: Path) -> None:
    assert find_interpreter([str(python), "-uIB", "-S", "x.py", "-E"], {}) == (str(python), "-I", "-S")


@pytest.mark.parametrize(
    "first_line", ["#!{python}", "#! {python} -u", "#!/usr/bin/env python3.11", "#!/usr/bin/env -S python3.11 -u"]
)
def test_a_script_names_its_interpreter(tmp_path: Path, first_line: str) -> None:
    python = executable(tmp_path / "bin" / "python3.11")
    script = executable(tmp_path / "torchrun", first_line.format(python=python) + "\nimport torch\n")
    assert find_interpreter([str(script)], {"PATH": str(python.parent)}) == (str(python),)


def test_the_form_that_pip_writes_for_a_path_with_spaces(tmp_path: Path, python: Path) -> None:
    text = f"#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\nimport sys\n"
    assert find_interpreter([str(executable(tmp_path / "accelerate", text))], {}) == (str(python),)


@pytest.mark.parametrize("text", ["#!/bin/sh\npython3 x.py\n", "", "#!", "\x7fELF", "#!/usr/bin/env\n"])
def test_other_programs_are_not_asked(tmp_path: Path, text: str) -> None:
    assert isinstance(locate([str(executable(tmp_path / "program", text))], {"PATH": ""}), UnknownTorch)


def package(directory: Path, version: str | None) -> Path:
    torch = directory / "torch"
    (torch / "lib").mkdir(parents=True)
    (torch / "__init__.py").write_text("raise RuntimeError('must not be imported')\n")
    (torch / "lib" / "libtorch_cpu.so").touch()
    if version is not None:
        (torch / "version.py").write_text(f"__all__ = []\n__version__ = {version!r}\ndebug = False\n")
    return torch


def test_the_interpreter_is_asked_without_importing_torch(tmp_path: Path) -> None:
    torch = package(tmp_path, "2.6.0+cpu")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    assert locate([sys.executable, "x.py"], environment) == Torch(torch / "lib", "2.6.0+cpu")


def test_what_the_interpreter_prints_at_its_start_is_no_answer(tmp_path: Path) -> None:
    torch = package(tmp_path, None)
    (tmp_path / "sitecustomize.py").write_text("print('hello')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    assert locate([sys.executable], environment) == Torch(torch / "lib", None)


def test_an_interpreter_without_torch() -> None:
    assert locate([sys.executable, "-I"], os.environ) == NoTorch(Path(sys.executable))


def test_an_interpreter_that_does_not_answer(tmp_path: Path) -> None:
    broken = executable(tmp_path / "python3", "#!/bin/sh\nexit 1\n")
    assert isinstance(locate([str(broken)], os.environ), UnknownTorch)


def test_the_variable_comes_first(tmp_path: Path) -> None:
    torch = package(tmp_path, "2.7.0")
    environment = {LIBRARY_VARIABLE: str(torch / "lib")}
    assert locate(["anything"], environment) == Torch(torch / "lib", "2.7.0", from_variable=True)


def test_a_wrong_variable_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(IprofError, match=f"{LIBRARY_VARIABLE}={tmp_path} holds no libtorch_cpu.so") as error:
        locate(["anything"], {LIBRARY_VARIABLE: str(tmp_path)})
    assert error.value.status is ExitStatus.USAGE
