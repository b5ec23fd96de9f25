"""Reads thousands of damaged copies of a trace, under AddressSanitizer; fails when one crashes a reader.

usage: fuzz.py COUNT [SEED]

Each case is a fork that damages the stream or the description of a recorded trace and runs every analysis on it.
Errors are expected, and so are results; what must not happen is a signal, a sanitizer's report, a traceback or an
endless wait.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final

from iprof_py import analyses, backends, messages, native, traces
from iprof_py.errors import IprofError
from iprof_py.settings import AnalysisSettings

REPOSITORY: Final = Path(__file__).parents[2]
PLUGIN_DIRECTORY: Final = REPOSITORY / "build/native-tests/native/analysis"
TIME_LIMIT_S: Final = 60
SANITIZER_STATUS: Final = 99

Damage = Callable[[random.Random, bytearray], bytearray]


def flip_bits(dice: random.Random, data: bytearray) -> bytearray:
    for _ in range(dice.choice((1, 4, 64))):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return data


def truncate(dice: random.Random, data: bytearray) -> bytearray:
    return data[: dice.randrange(len(data))]


def overwrite(dice: random.Random, data: bytearray) -> bytearray:
    start = dice.randrange(len(data))
    data[start : start + dice.choice((1, 8, 500))] = dice.choice((b"\xff", b"\x00", b"\x7f")) * dice.choice((1, 8, 500))
    return data


def repeat(dice: random.Random, data: bytearray) -> bytearray:
    start = dice.randrange(len(data))
    return data[:start] + data[max(0, start - 1000) :]


def scramble(dice: random.Random, data: bytearray) -> bytearray:
    start = dice.randrange(len(data))
    return data[:start] + bytearray(dice.randbytes(dice.randrange(1, 5000))) + data[start:]


DAMAGES: Final[tuple[Damage, ...]] = (flip_bits, flip_bits, overwrite, overwrite, truncate, repeat, scramble)


def settings(name: str, output: Path) -> AnalysisSettings:
    return AnalysisSettings(
        name=name,
        output=output,
        backends=backends.DEFAULT,
        extended=True,
        max_name_size=80,
        format="text",
        sort="time",
        top=None,
        filter=None,
        columns=(),
        by="scope",
        depth=None,
        base=None,
        threshold=None,
    )


def read_everything(path: Path) -> None:
    outputs = {"tally": "tally", "tree": "tree", "trace": "trace", "timeline": "timeline.pftrace"}
    for name, output in outputs.items():
        try:
            analyses.analyse(traces.open_trace(path), settings(name, path / output))
        except IprofError:
            continue


def damage(dice: random.Random, trace: Path) -> None:
    files = [file for file in trace.glob("**/64-bit/*") if file.is_file() and file.stat().st_size]
    file = dice.choice(files)
    data = dice.choice(DAMAGES)(dice, bytearray(file.read_bytes()))
    file.write_bytes(data)


def run_case(original: Path, directory: Path, seed: int) -> int:
    """Read one damaged copy in a fork; the fork's wait status."""
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    status = 0
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        copy = directory / "copy"
        shutil.copytree(original, copy)
        damage(random.Random(seed), copy)  # noqa: S311 - the same damage for the same seed
        signal.alarm(TIME_LIMIT_S)
        read_everything(copy)
    except BaseException:
        traceback.print_exc()
        status = 1
    os._exit(status)


def record(directory: Path) -> Path:
    trace = directory / "original"
    program = REPOSITORY / "tests/integration/programs/odd_scopes.py"
    iprof = Path(sys.executable).parent / "iprof-py"
    command = [iprof, "--no-analysis", "--python-log", "--trace-output", trace, "--"]
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "ASAN_OPTIONS")}
    python = REPOSITORY / ".venv-torch/bin/python"
    subprocess.run([*command, python, program], check=True, capture_output=True, env=environment)
    return trace


def main() -> None:
    if "LD_PRELOAD" not in os.environ:
        run_again_with_sanitizer()
    count = int(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    messages.configure(4)
    find = native.find
    native.find = lambda name: PLUGIN_DIRECTORY / name if name == native.PLUGIN_FILE else find(name)
    with tempfile.TemporaryDirectory(prefix="iprof-fuzz-") as directory:
        trace = record(Path(directory))
        for seed in range(first, first + count):
            status = run_case(trace, Path(directory), seed)
            shutil.rmtree(Path(directory, "copy"), ignore_errors=True)
            if status:
                sys.exit(f"seed {seed}: wait status {status}")
    print(f"{count} damaged traces read")


def run_again_with_sanitizer() -> None:
    """ASan's library must come first in the process that loads the plugin. Leaks of the interpreter are not ours."""
    library = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout
    environment = {
        **os.environ,
        "LD_PRELOAD": library.strip(),
        "ASAN_OPTIONS": f"detect_leaks=0:exitcode={SANITIZER_STATUS}:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "halt_on_error=1",
    }
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


main()
