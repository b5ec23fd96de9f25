"""Talks to an LTTng session daemon: the ``lttng`` commands, and the one question that no command answers quickly."""

from __future__ import annotations

import ctypes
import os
import shlex
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from iprof_py.errors import ExitStatus, IprofError
from iprof_py.messages import log

PID_FILE: Final = "lttng-sessiond.pid"
CLIENT_SOCKET: Final = "client-lttng-sessiond"

_TIME_LIMIT_S: Final = 30.0
_INSTALL: Final = "install LTTng (Debian: apt install lttng-tools liblttng-ust1)"
# Users of this group may use root's daemon.
TRACING_GROUP: Final = "tracing"
# Nobody is in this one: a user of the tracing group gets to his own daemon.
NO_GROUP: Final = "iprof-py-nobody"


class LttngError(IprofError):
    """A command to the session daemon failed."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ExitStatus.SESSION)


def missing_tool(tool: str) -> IprofError:
    """The error for a program of lttng-tools that is not on PATH."""
    return IprofError(f"{tool} was not found: {_INSTALL}", ExitStatus.SETUP)


class Client:
    """Sends commands to one session daemon: the machine's (``home`` is None) or that of ``home``."""

    def __init__(self, home: Path | None) -> None:
        self.home = home
        self._group = TRACING_GROUP if home is None else NO_GROUP

    @property
    def is_shared(self) -> bool:
        """Whether other runs use the same daemon, and record our programs as we record theirs."""
        return self.home is None

    @property
    def run_directory(self) -> Path:
        """Where the daemon has its sockets and its pid file."""
        return Path("/var/run/lttng") if self.home is None else self.home / ".lttng"

    @property
    def daemon_pid(self) -> int | None:
        """The daemon's process, as its pid file has it."""
        try:
            return int((self.run_directory / PID_FILE).read_text())
        except (OSError, ValueError):
            return None

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables that lead a program to this daemon."""
        return {} if self.home is None else {"LTTNG_HOME": str(self.home)}

    def run(self, *arguments: str) -> str:
        """The stdout of ``lttng ARGUMENTS``; raises LttngError with its own words when it fails."""
        command = ["lttng", "--no-sessiond", f"--group={self._group}", *arguments]
        log.info("%s", shlex.join([*(f"{name}={value}" for name, value in self.variables.items()), *command]))
        try:
            done = subprocess.run(
                command,
                env={**os.environ, **self.variables},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIME_LIMIT_S,
                check=False,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise missing_tool("lttng") from None
        except subprocess.TimeoutExpired:
            raise LttngError(f"`lttng {arguments[0]}` did not answer within {_TIME_LIMIT_S:.0f} s") from None
        if done.returncode != 0:
            raise LttngError(f"`lttng {arguments[0]}` failed: {_last_words(done.stdout, done.stderr)}")
        return done.stdout

    def answers(self) -> bool:
        """Whether the daemon is there: whether it takes a client's connection."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            return client.connect_ex(str(self.run_directory / CLIENT_SOCKET)) == 0

    def stop(self, session: str) -> None:
        """Stop a session; its data may still be pending, unless only the slow command can tell when it is not."""
        self.run("stop", *([] if _control_library() is None else ["--no-wait"]), session)

    def data_pending(self, session: str) -> bool:
        """Whether events of a stopped session are still on their way to the disk."""
        library = _control_library()
        if library is None:
            return False
        with _variables_set(self.variables):
            library.lttng_set_tracing_group(self._group.encode())
            return bool(library.lttng_data_pending(session.encode()) == 1)


def _last_words(stdout: str, stderr: str) -> str:
    lines = [line.strip() for line in (stderr.strip() or stdout.strip()).splitlines()]
    return lines[-1].removeprefix("Error: ") if lines else "it gave no reason"


def _control_library() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL("liblttng-ctl.so.0")
    except OSError:
        return None


@contextmanager
def _variables_set(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables in this process, whose C library liblttng-ctl asks."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
