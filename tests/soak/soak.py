"""A training loop under iprof-py for a long time: is memory flat, is every event there?

usage: soak.py MINUTES

Samples the resident memory of the program and of LTTng's daemons; fails when one grew, when LTTng lost an event, or
when the tally's count of optimizer steps is not the program's own.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).parents[2]
IPROF: Final = Path(sys.executable).parent / "iprof-py"
PROGRAM: Final = Path(__file__).parent / "training.py"
PERIOD_S: Final = 5.0
ALLOWED_GROWTH: Final = 1.05

# How the watched processes are found, by what their command lines hold.
WATCHED: Final = {"program": str(PROGRAM), "session daemon": "lttng-sessiond", "consumer daemon": "lttng-consumerd"}


def resident_kb() -> dict[str, int]:
    """The resident memory of each watched kind of process; iprof-py itself is none of them."""
    found: dict[str, int] = {}
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            words = (directory / "cmdline").read_bytes().decode(errors="replace").split("\0")
            status = (directory / "status").read_text()
        except OSError:
            continue
        if any(word.endswith("iprof-py") for word in words) or "VmRSS" not in status:
            continue
        size_kb = int(status.partition("VmRSS:")[2].split()[0])
        for name, part in WATCHED.items():
            if any(part in word for word in words[:2]):
                found[name] = max(found.get(name, 0), size_kb)
    return found


def main() -> None:
    duration_s = float(sys.argv[1]) * 60
    samples: dict[str, list[int]] = {name: [] for name in WATCHED}
    with tempfile.TemporaryDirectory(prefix="iprof-soak-") as directory:
        trace = Path(directory, "trace")
        python = REPOSITORY / ".venv-torch/bin/python"
        command = [IPROF, "--no-analysis", "--trace-output", trace, "--", python, PROGRAM, str(duration_s)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            warm_s = time.monotonic() + min(30.0, duration_s / 4)
            while process.poll() is None:
                time.sleep(PERIOD_S)
                if time.monotonic() > warm_s:
                    for name, size_kb in resident_kb().items():
                        samples[name].append(size_kb)
            output = process.communicate()[0]
        report(output, trace, samples)


def report(output: str, trace: Path, samples: dict[str, list[int]]) -> None:
    tally = json.loads(subprocess.run([IPROF, "-j", "-r", trace], capture_output=True, check=True).stdout)
    steps = tally["scopes"]["data"]["Optimizer.step#AdamW.step"]["call"]
    metadata = json.loads(next(trace.glob("*/iprof_metadata.json")).read_text())
    size_mb = sum(file.stat().st_size for file in trace.glob("**/*") if file.is_file()) / 1e6
    operators = tally["host"]["6"]["data"]["Total"]["call"]
    print(f"{operators} operators, {size_mb:.0f} MB, {metadata['discarded_events']} events lost")
    problems = []
    if steps != int(output.split()[-1]) or metadata["discarded_events"] or metadata["lost_packets"]:
        problems.append(f"{steps} of {output.split()[-1]} steps in the tally")
    for name, sizes_kb in samples.items():
        quarter = max(1, len(sizes_kb) // 4)
        first, last = (statistics.median(part) for part in (sizes_kb[:quarter], sizes_kb[-quarter:]))
        print(f"{name}: {first / 1024:.1f} MB in the first quarter, {last / 1024:.1f} MB in the last")
        if last > first * ALLOWED_GROWTH:
            problems.append(f"the {name} grew")
    sys.exit("; ".join(problems) or os.EX_OK)


main()
