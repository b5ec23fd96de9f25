"""Measures iprof-py against doing without it, torch.profiler and babeltrace2, and prints Markdown tables.

usage: run.py [--quick] [--only NAME] [-o FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from measure import IPROF, TORCH_PYTHON, WORKLOADS, alternate, machine, output_of, peak_mb, seconds, table

from iprof_py import launcher, native, torch_locate

HOOK = native.find("libiprof_pytorch.so")
WORKLOAD = WORKLOADS / "run.py"


class Bench:
    """Where traces go, and how much is measured."""

    def __init__(self, directory: Path, quick: bool) -> None:
        self.directory = directory
        self.quick = quick
        self.repeats = 3 if quick else 7

    def trace(self, name: str, *command: str | Path) -> Path:
        """Record a command once; the trace's directory."""
        path = self.directory / name
        if not path.exists():
            output_of([IPROF, "--no-analysis", "--trace-output", path, "--", *command])
        return path


def processes(bench: Bench) -> str:
    """What the preload costs a process that never loads torch, over many of them."""
    count = 50

    def many(*preload: str | Path) -> Callable[[], float]:
        loop = f"i=0; while [ $i -lt {count} ]; do /bin/true; i=$((i+1)); done"
        environment = {"LD_PRELOAD": ":".join(map(str, preload))} if preload else {}
        command = ["/bin/sh", "-c", loop]
        return lambda: seconds(command, environment) / count

    samples = alternate(
        bench.repeats,
        bare=many(),
        fork_library=many(launcher.FORK_LIBRARY),
        hook=many(HOOK, launcher.FORK_LIBRARY),
    )
    bare = samples["bare"].median
    rows = [
        [name, sample.text(1000, "ms"), f"{(sample.median - bare) * 1000:.2f} ms"] for name, sample in samples.items()
    ]
    return table(["/bin/true", "each", "more than bare"], rows)


def runs(bench: Bench) -> str:
    """What starting and ending a run costs, and locating torch."""
    environment = {"THAPI_HOME": str(bench.directory / "home")}

    def locate() -> float:
        start = time.perf_counter()
        torch_locate.locate([str(TORCH_PYTHON), "x.py"], os.environ)
        return time.perf_counter() - start

    samples = alternate(
        bench.repeats * 2,
        bare=lambda: seconds(["sleep", "0.2"]),
        iprof=lambda: seconds([IPROF, "--no-analysis", "--", "sleep", "0.2"], environment),
        locate=locate,
    )
    more = samples["iprof"].median - samples["bare"].median
    rows = [
        ["sleep 0.2", samples["bare"].text(1, "s"), ""],
        ["iprof-py --no-analysis -- sleep 0.2", samples["iprof"].text(1, "s"), f"{more:.2f} s"],
        ["locating torch by its interpreter", samples["locate"].text(1, "s"), ""],
    ]
    return table(["", "time", "more than bare"], rows)


def overhead(bench: Bench) -> str:
    """What recording an operator costs, beside torch.profiler."""
    counts = {"add": 300_000, "two_threads": 300_000, "mlp": 500, "transformer": 150, "loader": 300}
    environment = {"THAPI_HOME": str(bench.directory / "home")}
    rows = []
    for name, count in counts.items():
        count = count // 5 if bench.quick else count
        command = [TORCH_PYTHON, WORKLOAD, name, str(count)]
        tally = json.loads(output_of([IPROF, "-j", "--", *command]).splitlines()[-1])
        operators = tally["host"]["6"]["data"]["Total"]["call"] * 20 / 21  # the warm-up is a twentieth

        def measured(command: Sequence[str | Path]) -> Callable[[], float]:
            def measure() -> float:
                os.environ.update(environment)
                return float(json.loads(output_of(command).splitlines()[-1])["seconds"])

            return measure

        samples = alternate(
            bench.repeats,
            bare=measured(command),
            iprof=measured([IPROF, "--no-analysis", "--", *command]),
            profiler=measured([*command, "profiler"]),
        )
        more = {mode: (samples[mode].median - samples["bare"].median) / operators for mode in ("iprof", "profiler")}
        rows.append(
            [
                name,
                f"{operators:.0f}",
                samples["bare"].text(1, "s"),
                f"{more['iprof'] * 1e6:.2f} µs",
                f"{more['profiler'] * 1e6:.2f} µs",
                f"{more['iprof'] / more['profiler']:.2f}",
            ]
        )
    return table(["workload", "operators", "bare", "iprof-py an operator", "torch.profiler an operator", "ratio"], rows)


def memory(bench: Bench) -> str:
    """How the program's memory grows while it is recorded."""
    rows = []
    for count in (100_000, 1_000_000) if bench.quick else (100_000, 1_000_000, 4_000_000):
        command = [TORCH_PYTHON, WORKLOAD, "add", str(count)]
        os.environ["THAPI_HOME"] = str(bench.directory / "home")
        grown = {
            "bare": output_of(command),
            "iprof-py": output_of([IPROF, "--no-analysis", "--", *command]),
            "torch.profiler": output_of([*command, "profiler"]),
        }
        shutil.rmtree(bench.directory / "home", ignore_errors=True)
        rows.append(
            [f"{count}", *(f"{json.loads(text.splitlines()[-1])['grown_mb']:.0f} MB" for text in grown.values())]
        )
    return table(["operators", "bare", "iprof-py", "torch.profiler"], rows)


def analysis(bench: Bench) -> str:
    """How long analyses take, beside babeltrace2 reading the same trace and doing nothing."""
    rows = []
    for count in (50_000, 500_000) if bench.quick else (50_000, 500_000, 2_000_000):
        trace = bench.trace(f"add-{count}", TORCH_PYTHON, WORKLOAD, "add", str(count))
        size = sum(file.stat().st_size for file in trace.glob("**/*") if file.is_file())
        commands = {
            "tally": [IPROF, "-r", trace],
            "tally -e": [IPROF, "-r", trace, "-e"],
            "tree": [IPROF, "-r", trace, "--analysis", "tree"],
        }
        measures = {name: _timing(command) for name, command in commands.items()}
        samples = alternate(bench.repeats, dummy=_timing(["babeltrace2", trace, "-o", "dummy"]), **measures)
        events = 2 * count * 21 // 20
        for name, command in commands.items():
            ratio = samples[name].median / samples["dummy"].median
            rows.append(
                [
                    f"{events / 1e6:.1f} million",
                    f"{size / events * 2:.0f} bytes",
                    name,
                    samples[name].text(1, "s"),
                    samples["dummy"].text(1, "s"),
                    f"{ratio:.2f}",
                    f"{peak_mb(command):.0f} MB",
                ]
            )
    header = ["events", "an operator on disk", "analysis", "time", "babeltrace2 -o dummy", "ratio", "memory"]
    return table(header, rows)


def _timing(command: Sequence[str | Path]) -> Callable[[], float]:
    return lambda: seconds(command)


BENCHMARKS = {
    "processes": processes,
    "runs": runs,
    "overhead": overhead,
    "memory": memory,
    "analysis": analysis,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer repeats of smaller work")
    parser.add_argument("--only", choices=BENCHMARKS, action="append", help="only this benchmark; may be repeated")
    parser.add_argument("-o", "--output", type=Path, help="also write the tables there")
    arguments = parser.parse_args()
    text = f"Measured on {machine()}. Medians, with the range; repeated side by side.\n"
    print(text)
    with tempfile.TemporaryDirectory(prefix="iprof-bench-") as directory:
        bench = Bench(Path(directory), arguments.quick)
        for name in arguments.only or BENCHMARKS:
            section = f"## {name}\n\n{BENCHMARKS[name].__doc__}\n\n{BENCHMARKS[name](bench)}\n"
            print(section)
            sys.stdout.flush()
            text += "\n" + section
    if arguments.output:
        arguments.output.write_text(text)


main()
