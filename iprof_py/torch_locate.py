"""Finds the libtorch that a command will load, and its version, without importing torch.

The hook attaches to whatever libtorch a process loads, so that nothing here is needed to record a program. It is
needed to keep the hook away from a release that it does not know, and to honour ``LTTNG_UST_PYTORCH_LIBRARY_PATH``.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.version import InvalidVersion, Version

from iprof_py.errors import ExitStatus, IprofError
from iprof_py.messages import log

LIBRARY_VARIABLE: Final = "LTTNG_UST_PYTORCH_LIBRARY_PATH"
LIBRARY_FILE: Final = "libtorch_cpu.so"

# The releases whose RecordFunctionCallback the hook was checked against. Older ones, up to UNSUPPORTED, have fewer
# members in RecordScope: the callback's flags would be read at the wrong places.
VALIDATED_RANGE: Final = ((1, 13), (2, 14))
NEWEST_UNSUPPORTED: Final = (1, 10)

_TIME_LIMIT_S: Final = 10.0
_PYTHON_NAME: Final = re.compile(r"(python|pypy)[0-9.]*[a-z]?")
_ISOLATING_FLAGS: Final = re.compile(r"-[bBdEiIOPqsSuvx]+")
_MARK: Final = "iprof-py-torch:"
_PROBE: Final = f"""
import importlib.util, json, sys
sys.path = [entry for entry in sys.path if entry]
spec = importlib.util.find_spec("torch")
places = list(spec.submodule_search_locations or ()) if spec else []
print("{_MARK}" + json.dumps(places[0] if places else None))
"""


@dataclass(frozen=True)
class Torch:
    """A libtorch that the command is expected to load."""

    library_directory: Path
    version: str | None  # as torch/version.py has it; None where there is no such file
    from_variable: bool = False


@dataclass(frozen=True)
class NoTorch:
    """The command's interpreter has no torch."""

    interpreter: Path


@dataclass(frozen=True)
class UnknownTorch:
    """The command is no Python: what it loads is known when it runs."""


Location = Torch | NoTorch | UnknownTorch


@dataclass(frozen=True)
class VersionCheck:
    """What follows from a version of torch."""

    preload: bool
    warning: str | None


def locate(command: Sequence[str], environment: Mapping[str, str]) -> Location:
    """The libtorch for ``command``: from the variable, else by asking the interpreter that will run the command.

    Raises IprofError (USAGE) when the variable names no directory with a libtorch.
    """
    directory = environment.get(LIBRARY_VARIABLE)
    if directory:
        return _from_variable(Path(directory))
    interpreter = find_interpreter(command, environment)
    if interpreter is None:
        return UnknownTorch()
    return _ask(interpreter, environment)


def check_version(version: str | None) -> VersionCheck:
    """Whether the hook may be preloaded for this version, and what to tell the user."""
    if version is None:
        return VersionCheck(preload=True, warning=None)
    lowest, highest = (".".join(map(str, bound)) for bound in VALIDATED_RANGE)
    validated = f"the validated range is {lowest} to {highest}"
    try:
        release = Version(version).release[:2]
    except InvalidVersion:
        return VersionCheck(preload=True, warning=f"cannot tell which PyTorch {version!r} is; {validated}")
    if release <= NEWEST_UNSUPPORTED:
        reason = "its RecordScope has fewer members than the hook relies on"
        return VersionCheck(preload=False, warning=f"PyTorch {version} is not recorded: {reason}; {validated}")
    if VALIDATED_RANGE[0] <= release <= VALIDATED_RANGE[1]:
        return VersionCheck(preload=True, warning=None)
    return VersionCheck(preload=True, warning=f"PyTorch {version} is untested: {validated}")


def find_interpreter(command: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...] | None:
    """The Python that runs ``command``, with the flags that decide what it can import; None for any other program."""
    program = shutil.which(command[0], path=environment.get("PATH"))
    if program is None:
        return None
    if _is_python(program):
        return (program, *_isolating_flags(command[1:]))
    return _shebang_interpreter(Path(program), environment)


def _from_variable(directory: Path) -> Torch:
    if not (directory / LIBRARY_FILE).is_file():
        raise IprofError(
            f"{LIBRARY_VARIABLE}={directory} holds no {LIBRARY_FILE}: name the directory that holds it, such as "
            f"…/site-packages/torch/lib",
            ExitStatus.USAGE,
        )
    directory = directory.absolute()
    return Torch(directory, _read_version(directory.parent), from_variable=True)


def _is_python(program: str) -> bool:
    return _PYTHON_NAME.fullmatch(Path(program).name) is not None


def _isolating_flags(arguments: Sequence[str]) -> list[str]:
    flags: list[str] = []
    for argument in arguments:
        if not _ISOLATING_FLAGS.fullmatch(argument):
            break
        kept = "".join(letter for letter in argument[1:] if letter in "EIPsS")
        flags += [f"-{kept}"] if kept else []
    return flags


def _shebang_interpreter(script: Path, environment: Mapping[str, str]) -> tuple[str, ...] | None:
    try:
        with script.open("rb") as file:
            head = file.read(4096)
    except OSError:
        return None
    if not head.startswith(b"#!"):
        return None
    lines = head.decode(errors="surrogateescape").splitlines()
    words = lines[0][2:].split(maxsplit=1)
    if not words:
        return None
    if Path(words[0]).name == "env":
        words = [word for word in " ".join(words[1:]).split() if not word.startswith("-") and "=" not in word]
    elif words[0] == "/bin/sh" and len(lines) > 1:
        words = _pip_interpreter(lines[1])
    if not words or not _is_python(words[0]):
        return None
    found = shutil.which(words[0], path=environment.get("PATH"))
    return (found,) if found else None


def _pip_interpreter(second_line: str) -> list[str]:
    """The interpreter in the two-line form that pip writes when its path is long or has spaces."""
    prefix = "'''exec' "
    if not second_line.startswith(prefix):
        return []
    try:
        return shlex.split(second_line.removeprefix(prefix))[:1]
    except ValueError:
        return []


def _ask(interpreter: tuple[str, ...], environment: Mapping[str, str]) -> Location:
    log.debug("asking %s where its torch is", interpreter[0])
    try:
        answer = subprocess.run(
            [*interpreter, "-c", _PROBE],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIME_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        log.warning("%s did not say within %.0f s whether it has torch", interpreter[0], _TIME_LIMIT_S)
        return UnknownTorch()
    except OSError:
        return UnknownTorch()
    marked = [line for line in answer.stdout.splitlines() if line.startswith(_MARK)]
    if not marked:
        return UnknownTorch()
    package = json.loads(marked[-1].removeprefix(_MARK))
    if package is None:
        return NoTorch(Path(interpreter[0]))
    return Torch(Path(package, "lib"), _read_version(Path(package)))


def _read_version(package: Path) -> str | None:
    try:
        module = ast.parse((package / "version.py").read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None
    for statement in module.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        is_version = any(isinstance(target, ast.Name) and target.id == "__version__" for target in targets)
        if is_version and isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            return str(statement.value.value)
    return None
