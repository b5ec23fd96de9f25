"""What iprof-py itself says: lines on stderr that begin with its name.

The levels are those of THAPI's ``--debug``: 0 debug, 1 info, 2 warning, 3 error, 4 fatal. Notices (where the trace is)
and warnings appear unless the level is above 2.
"""

from __future__ import annotations

import logging
import sys
from typing import Final

NOTICE: Final = logging.WARNING + 1
LEVELS: Final = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
DEFAULT_LEVEL: Final = 2

log = logging.getLogger("iprof_py")


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        kind = {logging.WARNING: "warning: ", logging.ERROR: "error: "}.get(record.levelno, "")
        return f"iprof-py: {kind}{record.getMessage()}"


class _StderrHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to the stderr of the moment, and never fails the run because nobody reads it."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        pass


def configure(level: int) -> None:
    """Show messages from ``level`` (0 to 4) up."""
    log.handlers.clear()
    handler = _StderrHandler(sys.stderr)
    handler.setFormatter(_Formatter())
    log.addHandler(handler)
    log.propagate = False
    log.setLevel(LEVELS[level])


def notice(message: str) -> None:
    """Say something the user asked for or needs to know."""
    log.log(NOTICE, "%s", message)


def warn(message: str) -> None:
    """Say that something may not be as the user expects."""
    log.warning("%s", message)
