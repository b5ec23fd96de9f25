"""Timing by alternation: machines are noisy, so that only what ran side by side is compared."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
IPROF = REPOSITORY / ".venv/bin/iprof-py"
TORCH_PYTHON = REPOSITORY / ".venv-torch/bin/python"
WORKLOADS = Path(__file__).parent / "workloads"


@dataclass(frozen=True)
class Sample:
    """Repeated measurements of one thing."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle of the measurements."""
        return statistics.median(self.values)

    def text(self, scale: float, unit: str) -> str:
        """The median and the range, times ``scale``."""
        low, middle, high = (value * scale for value in (min(self.values), self.median, max(self.values)))
        return f"{middle:.2f} {unit} ({low:.2f} to {high:.2f})"


def alternate(repeats: int, **measures: Callable[[], float]) -> dict[str, Sample]:
    """Take each measure in turn, ``repeats`` times over."""
    values: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(repeats):
        for name, measure in measures.items():
            values[name].append(measure())
    return {name: Sample(tuple(taken)) for name, taken in values.items()}


def seconds(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> float:
    """The time that a command takes from start to end, in seconds."""
    variables = {**os.environ, **(environment or {})}
    start = time.perf_counter()
    subprocess.run(list(map(str, command)), env=variables, check=True, capture_output=True)
    return time.perf_counter() - start


def peak_mb(command: Sequence[str | Path]) -> float:
    """The largest memory of a command, in MB."""
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return usage.ru_maxrss / 1024


def output_of(command: Sequence[str | Path]) -> str:
    """What a command prints."""
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def machine() -> str:
    """What the figures were taken on, in one line."""
    cpu = next((line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "?")
    debian = next(
        (line.split("=")[1].strip('"') for line in _lines("/etc/os-release") if line.startswith("PRETTY")), "?"
    )
    torch = output_of([TORCH_PYTHON, "-c", "import torch; print(torch.__version__)"]).strip()
    lttng = output_of(["lttng", "--version"]).split()[2]
    babeltrace = output_of(["babeltrace2", "--version"]).split()[1]
    parts = (f"{os.cpu_count()} cores of {cpu}", f"Linux {platform.release()}", debian, f"LTTng {lttng}")
    return ", ".join((*parts, f"babeltrace {babeltrace}", f"PyTorch {torch}"))


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()
