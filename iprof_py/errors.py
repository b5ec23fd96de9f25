"""The errors a user can cause, and the exit statuses that go with them."""

from __future__ import annotations

import enum


class ExitStatus(enum.IntEnum):
    """Exit statuses that are iprof-py's own; otherwise it exits with the status of the traced program."""

    CHANGED = 1  # a comparison found more change than the threshold allows
    USAGE = 2  # a bad option or argument
    SETUP = 3  # a part of the installation is missing: LTTng, bt2, the native libraries
    SESSION = 4  # the LTTng session could not be made
    TRACE = 5  # a trace is missing, empty or unreadable
    OUTPUT = 6  # a file or directory cannot be written
    NOT_EXECUTABLE = 126  # the command cannot be executed
    NOT_FOUND = 127  # the command was not found
    INTERRUPTED = 130  # Ctrl-C during an analysis


class IprofError(Exception):
    """Something that the user can put right; its text says what is wrong and what to do, in one line."""

    def __init__(self, message: str, status: ExitStatus) -> None:
        super().__init__(message)
        self.status = status


def reason(error: OSError) -> str:
    """The system's own words for an error, such as ``Permission denied``."""
    return error.strerror or str(error)
