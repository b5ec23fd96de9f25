"""The analyses of a trace, each a module of its own, registered here.

An analysis knows a trace directory and its settings, and writes to the stream that it is given.
"""

from __future__ import annotations

import enum
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, TextIO

from iprof_py.errors import ExitStatus, IprofError, reason
from iprof_py.settings import AnalysisSettings
from iprof_py.traces import Trace


class Words(enum.Enum):
    """What the words after the options are."""

    COMMAND = "the command to run"
    OUTPUT_AND_COMMAND = "where the analysis goes, if it ends like that, and the command to run"
    TRACES = "the base trace and the new one"


@dataclass(frozen=True)
class Analysis:
    """One analysis: its name on the command line, what it shows, and where its code is.

    The function takes the trace, the settings and the stream to write to, and returns the exit status.
    """

    name: str
    summary: str
    function: str  # module.function; imported when it is needed, for a run should start without waiting for analyses
    options: frozenset[str]  # settings of its own that the command line may set
    words: Words = Words.COMMAND
    endings: tuple[str, ...] = ()  # of the names of the files that it writes; none: any
    default_output: str | None = None  # None: stdout

    def run(self, trace: Trace, settings: AnalysisSettings, output: TextIO) -> int:
        """Do the analysis; the exit status."""
        module, _, function = self.function.rpartition(".")
        run: Callable[[Trace, AnalysisSettings, TextIO], int] = getattr(import_module(f"{__name__}.{module}"), function)
        return run(trace, settings, output)


_TALLY_OPTIONS = frozenset({"json", "format", "extended", "max_name_size", "sort", "top", "filter", "columns", "by"})
_COMPARE_OPTIONS = frozenset({"json", "format", "max_name_size", "top", "filter", "threshold"})

DEFAULT: Final = "tally"
DEFAULT_TIMELINE: Final = "out.pftrace"
# What the name of an output ends in decides its format.
TIMELINE_ENDINGS: Final = (".pftrace", ".perfetto-trace", ".json", ".json.gz")
FLAME_ENDINGS: Final = (".folded", ".speedscope.json")
ANALYSES: Final = {
    analysis.name: analysis
    for analysis in (
        Analysis("tally", "time and calls of each operator", "tally.run", _TALLY_OPTIONS),
        Analysis(
            "tree", "which operator calls which", "tree.run_text", frozenset({"extended", "max_name_size", "depth"})
        ),
        Analysis(
            "flamegraph",
            "the same for flame graph viewers",
            "tree.run_flamegraph",
            frozenset(),
            Words.OUTPUT_AND_COMMAND,
            FLAME_ENDINGS,
        ),
        Analysis("trace", "every event as a line", "trace.run", frozenset()),
        Analysis(
            "timeline",
            "every call on a timeline",
            "timeline.run",
            frozenset(),
            Words.COMMAND,
            TIMELINE_ENDINGS,
            DEFAULT_TIMELINE,
        ),
        Analysis("compare", "two traces side by side", "compare.run", _COMPARE_OPTIONS, Words.TRACES),
    )
}


def analyse(source: Trace, settings: AnalysisSettings) -> int:
    """Run the chosen analysis; its exit status. Raises IprofError, OUTPUT when its result cannot be written."""
    with _output(settings.output) as stream:
        return ANALYSES[settings.name].run(source, settings, stream)


@contextmanager
def _output(path: Path | None) -> Iterator[TextIO]:
    if path is None:
        with _written(None):
            yield sys.stdout
            sys.stdout.flush()
        return
    with _written(path), _replacing(path) as stream:
        yield stream


@contextmanager
def _written(path: Path | None) -> Iterator[None]:
    """Turn failures to write into errors. A reader that went away (`| head`) ends the output quietly."""
    try:
        yield
    except BrokenPipeError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise IprofError(f"cannot write {path or 'to stdout'}: {reason(error)}", ExitStatus.OUTPUT) from None


@contextmanager
def _replacing(path: Path) -> Iterator[TextIO]:
    """A file that takes its final name once it is complete; devices and pipes are written directly."""
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8") as stream:
            yield stream
        return
    mask = os.umask(0)
    os.umask(mask)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            yield stream
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
