"""The analyses of a trace, each a module of its own, registered here.

An analysis knows a trace directory and its settings, and writes to the stream that it is given.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from iprof_py.analyses import tally
from iprof_py.errors import ExitStatus, IprofError, reason
from iprof_py.settings import AnalysisSettings
from iprof_py.traces import Trace


@dataclass(frozen=True)
class Analysis:
    """One analysis: its name on the command line, what it shows, and the function that does it."""

    name: str
    summary: str
    run: Callable[[Trace, AnalysisSettings, TextIO], None]


DEFAULT: Final = "tally"
ANALYSES: Final = {
    analysis.name: analysis for analysis in (Analysis("tally", "time and calls of each operator", tally.run),)
}


def analyse(trace: Trace, settings: AnalysisSettings) -> None:
    """Run the chosen analysis. Raises IprofError, OUTPUT when its result cannot be written."""
    with _output(settings.output) as stream:
        ANALYSES[settings.name].run(trace, settings, stream)


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
