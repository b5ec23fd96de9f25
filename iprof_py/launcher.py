"""Runs the program: its environment, its signals, its exit status.

The program shares iprof-py's process group, terminal and standard streams, so that pipes, terminals and job control
work as if it had been started directly.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iprof_py.errors import ExitStatus, IprofError, reason
from iprof_py.messages import log, warn

# Passed on to the program when another process sends them to iprof-py.
_FORWARDED: Final = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_HANDLED: Final = (*_FORWARDED, signal.SIGCHLD)
# Those that the terminal sends to the whole process group, the program included.
_FROM_TERMINAL: Final = (signal.SIGINT, signal.SIGQUIT)
# Those that ask iprof-py to end too: the trace is kept, and no analysis follows.
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)
_SI_USER: Final = 0
_SECOND_INTERRUPT_S: Final = 2.0

_PREPENDED: Final = ("LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH")
_OWN: Final = ("LTTNG_HOME", "IPROF_RUN_ID", "IPROF_PYTHON_LOG")
# How long a starting program waits to be recorded; lttng-ust's own 3 s are short on a busy machine.
_REGISTER_LIMIT_MS: Final = 30_000
FORK_LIBRARY: Final = "liblttng-ust-fork.so.1"


@dataclass(frozen=True)
class Outcome:
    """How the program ended."""

    exit_status: int  # the program's own, or 128+N after signal N
    stopped_by: str | None = None  # why no analysis should follow: the user or the system asked iprof-py to end


class InterruptedEarlyError(Exception):
    """A signal arrived before the program was started."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number


def hook_variables(
    hooks: Sequence[Path], run_id: str, library_directory: Path | None, lttng: Mapping[str, str]
) -> dict[str, str]:
    """The variables that put the hooks into a program and lead it to the session daemon."""
    variables = {
        "LD_PRELOAD": ":".join([*map(str, hooks), FORK_LIBRARY]),
        "LTTNG_UST_ALLOW_BLOCKING": "1",
        "LTTNG_UST_REGISTER_TIMEOUT": str(_REGISTER_LIMIT_MS),
        "IPROF_RUN_ID": run_id,
        **lttng,
    }
    if library_directory is not None:
        variables["LD_LIBRARY_PATH"] = str(library_directory)
    return variables


def merge_environment(environment: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """The program's environment: search paths are put before the user's, other variables of the user's are kept.

    Those that lead to this run's session are always set.
    """
    merged = dict(environment)
    for name, value in variables.items():
        present = environment.get(name)
        if name in _PREPENDED and present:
            merged[name] = f"{value}:{present}"
        elif present is None or name in (*_PREPENDED, *_OWN):
            merged[name] = value
        elif present != value:
            warn(f"{name} is set to {present!r} and stays so; iprof-py would set {value!r}")
        log.info("%s=%s", name, merged[name])
    return merged


@contextmanager
def signals_held() -> Iterator[None]:
    """Hold back the signals that `run` handles, so that none cuts short what comes before and after it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run(command: Sequence[str], environment: Mapping[str, str]) -> Outcome:
    """Run a command to its end, passing signals on to it; to be called with `signals_held`.

    Raises IprofError (NOT_FOUND, NOT_EXECUTABLE), or InterruptedEarlyError when a signal came before the start.
    """
    early = signal.sigtimedwait((*_FROM_TERMINAL, *_ENDING), 0)
    if early is not None:
        raise InterruptedEarlyError(early.si_signo)
    return _Program(_start(command, environment)).wait()


def _start(command: Sequence[str], environment: Mapping[str, str]) -> int:
    try:
        return _spawn(command, environment)
    except FileNotFoundError:
        raise IprofError(
            f"{command[0]}: command not found, or the interpreter that it names", ExitStatus.NOT_FOUND
        ) from None
    except NotADirectoryError:
        raise IprofError(f"{command[0]}: command not found", ExitStatus.NOT_FOUND) from None
    except OSError as error:
        if error.errno == errno.ENOEXEC:
            return _start(["/bin/sh", *command], environment)  # a script without a first line, as a shell runs it
        raise IprofError(f"{command[0]}: cannot be run: {reason(error)}", ExitStatus.NOT_EXECUTABLE) from None


def _spawn(command: Sequence[str], environment: Mapping[str, str]) -> int:
    defaults = (signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores these, its child should not
    return os.posix_spawnp(command[0], list(command), environment, setsigmask=(), setsigdef=defaults)


class _Program:
    """The running program, and what signals mean for it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._stopped_by: str | None = None
        self._last_interrupt_s = -_SECOND_INTERRUPT_S

    def wait(self) -> Outcome:
        while True:
            arrived = signal.sigwaitinfo(_HANDLED)
            if arrived.si_signo != signal.SIGCHLD:
                self._pass_on(arrived)
                continue
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                return Outcome(code if code >= 0 else 128 - code, self._stopped_by)

    def _pass_on(self, arrived: signal.struct_siginfo) -> None:
        number = arrived.si_signo
        if number == signal.SIGINT:
            self._count_interrupt()
        if number in _ENDING:
            self._stopped_by = signal.Signals(number).name
        by_terminal = number in _FROM_TERMINAL and arrived.si_code > _SI_USER
        if not by_terminal and arrived.si_pid != self._pid:
            self._send(number)

    def _count_interrupt(self) -> None:
        now_s = time.monotonic()
        if now_s - self._last_interrupt_s < _SECOND_INTERRUPT_S:
            self._stopped_by = "a second interrupt"
            self._send(signal.SIGKILL)
        self._last_interrupt_s = now_s

    def _send(self, number: int) -> None:
        log.info("sending %s to process %d", signal.Signals(number).name, self._pid)
        os.kill(self._pid, number)  # the child is not reaped yet: its pid cannot be anyone else's
