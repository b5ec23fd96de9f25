"""The LTTng session daemon of a run.

An ordinary user gets one of the run's own, in the run's private directory. Root's is one for the machine, whatever
LTTNG_HOME says: a live one is used, also by users of the tracing group. One that iprof-py started ends with the last
run of root's that uses it.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from iprof_py import private
from iprof_py.errors import ExitStatus, IprofError, reason
from iprof_py.lttng import CLIENT_SOCKET, PID_FILE, Client, LttngError, missing_tool
from iprof_py.messages import log

_START_LIMIT_S: Final = 10.0
_STOP_LIMIT_S: Final = 5.0
_RUN_FILES: Final = (PID_FILE, "agent.port", CLIENT_SOCKET, "lttng-ust-sock-8", "sessiond-health")
# The sessions of runs bear the names of their private directories.
_SESSION: Final = re.compile(r"<session>\s*<name>([^<]*)</name>")


@contextmanager
def session_daemon(private_directory: Path) -> Iterator[Client]:
    """A running session daemon, given as a client of it; ends with the block when nobody else needs it.

    Raises IprofError (SETUP) when LTTng is not installed, (SESSION) when no daemon can be started.
    """
    daemon = _shared_daemon(private_directory.name) if os.geteuid() == 0 else _private_daemon(private_directory)
    with daemon as client:
        yield client


@contextmanager
def _private_daemon(directory: Path) -> Iterator[Client]:
    for orphan in private.orphans():
        _stop(Client(orphan))
        shutil.rmtree(orphan, ignore_errors=True)
    machines = Client(None)
    if machines.answers():
        # A user of the tracing group: LTTng lets him start no daemon of his own beside root's.
        yield machines
        return
    client = Client(directory)
    _start(client)
    try:
        yield client
    finally:
        _stop(client)


@contextmanager
def _shared_daemon(own_session: str) -> Iterator[Client]:
    client = Client(None)
    with _root_lock() as state:
        if client.answers():
            _destroy_orphans(client)
        else:
            _start(client)
            state.write_text(f"{client.daemon_pid}\n")
    try:
        yield client
    finally:
        with _root_lock() as state:
            if _started_by_us(state, client) and not _is_used(client, own_session):
                _stop(client)
                state.unlink(missing_ok=True)


def _destroy_orphans(client: Client) -> None:
    """Destroy the sessions of root's runs that were killed."""
    orphans = list(private.orphans())
    if not orphans:
        return
    for name in _sessions(client):
        if name.startswith(private.PREFIX) and not private.is_alive(private.ROOT_DIRECTORY / name):
            with suppress(LttngError):
                client.run("destroy", "--no-wait", name)
    for orphan in orphans:
        shutil.rmtree(orphan, ignore_errors=True)


@contextmanager
def _root_lock() -> Iterator[Path]:
    """Hold the lock of root's runs; gives the file that names the daemon that one of them started."""
    try:
        private.ROOT_DIRECTORY.mkdir(mode=0o700, exist_ok=True)
        lock = os.open(private.ROOT_DIRECTORY / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise IprofError(f"cannot use {private.ROOT_DIRECTORY}: {reason(error)}", ExitStatus.SESSION) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield private.ROOT_DIRECTORY / "daemon"
    finally:
        os.close(lock)


def _started_by_us(state: Path, client: Client) -> bool:
    try:
        return int(state.read_text()) == client.daemon_pid
    except (OSError, ValueError):
        return False


def _sessions(client: Client) -> list[str]:
    return _SESSION.findall(client.run("--mi", "xml", "list"))


def _is_used(client: Client, own_session: str) -> bool:
    """Whether anybody else has a session: a living run of ours, or somebody by hand."""
    try:
        others = [name for name in _sessions(client) if name != own_session]
    except IprofError:
        return False
    return any(
        not name.startswith(private.PREFIX) or private.is_alive(private.ROOT_DIRECTORY / name) for name in others
    )


def _start(client: Client) -> None:
    """Start a daemon; one that is just ending may still hold the place, so try for a while."""
    deadline = time.monotonic() + _START_LIMIT_S
    while True:
        words = _start_once(client)
        if words is None:
            return
        if time.monotonic() > deadline:
            raise IprofError(f"no LTTng session daemon could be started: {words}", ExitStatus.SESSION)
        time.sleep(0.05)


def _start_once(client: Client) -> str | None:
    """Start a daemon; None when it runs, else its last words."""
    with tempfile.TemporaryFile() as output:
        status = _spawn_daemon(client, output.fileno())
        output.seek(0)
        lines = output.read().decode(errors="replace").strip().splitlines()
    if status == 0 or client.answers():
        return None
    return lines[-1].removeprefix("Error: ") if lines else f"it ended with status {status}"


def _spawn_daemon(client: Client, output: int) -> int:
    """Run ``lttng-sessiond --daemonize`` apart from the terminal, with no signal blocked; its exit status."""
    environment = {**os.environ, **client.variables}
    environment.pop("LD_PRELOAD", None)
    command = ["lttng-sessiond", "--daemonize", "--no-kernel"]
    log.info("%s", " ".join([*(f"{name}={value}" for name, value in client.variables.items()), *command]))
    try:
        pid = os.posix_spawnp(
            command[0],
            command,
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, output, 1),
                (os.POSIX_SPAWN_DUP2, output, 2),
            ],
            setsid=True,
            setsigmask=(),
        )
    except FileNotFoundError:
        raise missing_tool("lttng-sessiond") from None
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _stop(client: Client) -> None:
    """End a daemon whose sessions are on disk, and wait for its end.

    It is killed, for on SIGTERM it takes half a second to end and lingers for one more; its consumer daemons end by
    themselves. What it leaves in its run directory would only be in the way of those who look for a living daemon.
    """
    pid = client.daemon_pid
    if pid is None:
        return
    with suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            select.select([handle], [], [], _STOP_LIMIT_S)
        finally:
            os.close(handle)
    for name in _RUN_FILES:
        with suppress(OSError):
            (client.run_directory / name).unlink()
