"""The private directory of a run: its daemon's files, and the sign that the run is alive.

It holds a lock file that is locked as long as the run lives. One whose lock is free was left by a run that was killed:
the next run of the same user removes it, with the daemon in it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from iprof_py.errors import ExitStatus, IprofError

PREFIX: Final = "iprof-py-"
# Where root's runs keep theirs, and agree on who starts and stops the machine's daemon.
ROOT_DIRECTORY: Final = Path("/run/iprof-py")

_LOCK_FILE: Final = "lock"
# LTTng puts sockets below the private directory; the address of one has at most 107 bytes.
_LONGEST_BASE: Final = 45


def bases() -> list[Path]:
    """The directories that a private directory may be made in, the preferred one first."""
    if os.geteuid() == 0:
        return [ROOT_DIRECTORY]
    places = (tempfile.gettempdir(), "/tmp", os.environ.get("XDG_RUNTIME_DIR"), "/dev/shm")  # noqa: S108
    return [Path(place) for place in places if place and len(place) <= _LONGEST_BASE and is_preloadable(place)]


def is_preloadable(path: str) -> bool:
    """Whether LD_PRELOAD can hold a path: blanks and colons separate its entries."""
    return not any(letter.isspace() or letter == ":" for letter in path)


@contextmanager
def private_directory(run_id: str) -> Iterator[Path]:
    """Make a directory of this run alone (mode 0700), deleted afterwards.

    Raises IprofError (SESSION) when none can be made.
    """
    directory = _create(run_id)
    lock = _lock(directory)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)


def _lock(directory: Path) -> int:
    """Lock a directory; the lock file gets its name when it is locked, so that nobody sees it free."""
    unlocked = directory / f".{_LOCK_FILE}"
    lock = os.open(unlocked, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unlocked.rename(directory / _LOCK_FILE)
    return lock


def _create(run_id: str) -> Path:
    for base in bases():
        directory = base / f"{PREFIX}{run_id}"
        with suppress(OSError):
            if base == ROOT_DIRECTORY:
                base.mkdir(mode=0o700, exist_ok=True)
            directory.mkdir(mode=0o700)
            return directory
    tried = ", ".join(map(str, bases()))
    raise IprofError(
        f"cannot make a private directory in any of {tried}: set TMPDIR to a short path that can be written",
        ExitStatus.SESSION,
    )


def is_alive(directory: Path) -> bool:
    """Whether the run of a private directory is still there."""
    try:
        lock = os.open(directory / _LOCK_FILE, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


def orphans() -> Iterator[Path]:
    """The private directories of this user whose runs were killed."""
    for base in bases():
        for directory in base.glob(f"{PREFIX}*"):
            with suppress(OSError):
                is_own = directory.lstat().st_uid == os.geteuid() and (directory / _LOCK_FILE).exists()
                if is_own and not is_alive(directory):
                    yield directory
