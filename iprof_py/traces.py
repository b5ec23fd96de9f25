"""Trace directories: where they are, what is in them, which is the newest.

A trace directory holds one directory for each host, with the CTF that LTTng wrote there, beside two metadata files:
THAPI's ``thapi_metadata.yaml`` and our ``iprof_metadata.json`` (docs/trace-format.md).
"""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from iprof_py.errors import ExitStatus, IprofError, reason

METADATA_FILE: Final = "iprof_metadata.json"
_THAPI_METADATA_FILE: Final = "thapi_metadata.yaml"
_THAPI_METADATA: Final = "---\n:type: lttng\n"
_PREFIX: Final = "thapi"
_CTF_METADATA_FILE: Final = "metadata"


@dataclass(frozen=True)
class RunMetadata:
    """What is known of a recorded run; a field is None while, or where, it is not known."""

    version: str  # of iprof-py
    run_id: str
    command: tuple[str, ...]
    host: str
    start: str  # ISO 8601, with the offset from UTC
    shared_daemon: bool  # other runs' programs may be in the trace: the run id tells them apart
    end: str | None = None
    torch_version: str | None = None
    exit_status: int | None = None
    discarded_events: int | None = None
    lost_packets: int | None = None


@dataclass(frozen=True)
class Trace:
    """A saved trace."""

    path: Path
    ctf_directories: tuple[Path, ...]  # each holds one CTF trace
    metadata: RunMetadata | None  # None: recorded by THAPI or by hand

    @property
    def run_filter(self) -> str:
        """The run id that a process must carry to belong to the trace; empty when all do."""
        return self.metadata.run_id if self.metadata and self.metadata.shared_daemon else ""


def host_name() -> str:
    """This machine's name."""
    return platform.node() or "localhost"


def trace_home() -> Path:
    """The directory of the user's traces; raises IprofError (OUTPUT) when the user has no home."""
    home = os.environ.get("THAPI_HOME")
    if home:
        return Path(home, "thapi-traces")
    try:
        return Path.home() / "thapi-traces"
    except RuntimeError:
        raise IprofError(
            "there is no home directory to put the trace in: set THAPI_HOME or give --trace-output",
            ExitStatus.OUTPUT,
        ) from None


def create(output: Path | None, start: datetime) -> Path:
    """Make a trace directory (mode 0700): ``output``, which must not exist, or a new one in the user's trace home.

    Raises IprofError, USAGE when ``output`` exists, OUTPUT when the directory cannot be made.
    """
    if output is not None:
        return _create_named(output.absolute())
    home = trace_home().absolute()
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _create_unique(home, f"{_PREFIX}--{start.isoformat(timespec='seconds')}")
    except OSError as error:
        raise cannot_create(home, error) from None


def _create_named(path: Path) -> Path:
    if os.path.lexists(path):
        raise IprofError(f"--trace-output {path} exists already: name a new one", ExitStatus.USAGE)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700)
    except OSError as error:
        raise cannot_create(path, error) from None
    return path


def _create_unique(home: Path, name: str) -> Path:
    """Make a directory of this name, with ``_1``, ``_2``… where the name is taken: mkdir decides between two runs."""
    number = 0
    while True:
        path = home / (f"{name}_{number}" if number else name)
        try:
            path.mkdir(mode=0o700)
            return path
        except FileExistsError:
            number += 1


def cannot_create(path: Path, error: OSError) -> IprofError:
    """The error for a trace directory that cannot be made."""
    return IprofError(
        f"cannot create the trace directory {path}: {reason(error)}; give another with --trace-output or THAPI_HOME",
        ExitStatus.OUTPUT,
    )


def prepare_host(trace: Path, metadata: RunMetadata) -> Path:
    """Make this host's directory in a new trace, with the metadata files; returns where LTTng is to write."""
    directory = trace / metadata.host
    try:
        directory.mkdir(mode=0o700)
        for place in (trace, directory):
            (place / _THAPI_METADATA_FILE).write_text(_THAPI_METADATA)
        write_metadata(directory, metadata)
    except OSError as error:
        raise cannot_create(directory, error) from None
    return directory


def write_metadata(directory: Path, metadata: RunMetadata) -> None:
    """Write a host's metadata; a reader sees the old one or the new one, never a part."""
    temporary = directory / f".{METADATA_FILE}.{os.getpid()}"
    temporary.write_text(json.dumps(asdict(metadata), indent=2) + "\n", encoding="utf-8")
    temporary.replace(directory / METADATA_FILE)


def remove(trace: Path) -> None:
    """Delete a trace directory, as far as possible."""
    shutil.rmtree(trace, ignore_errors=True)


def newest() -> Path:
    """The trace recorded last in the user's trace home; raises IprofError (TRACE) when there is none."""
    home = trace_home()
    candidates: list[tuple[float, str]] = []
    with suppress(OSError):
        for entry in os.scandir(home):
            if entry.name.startswith(_PREFIX) and entry.is_dir():
                candidates.append((entry.stat().st_mtime, entry.path))
    if not candidates:
        raise IprofError(f"there is no trace in {home}: record one with `iprof-py -- COMMAND`", ExitStatus.TRACE)
    return Path(max(candidates)[1])


def open_trace(path: Path) -> Trace:
    """The trace in a directory; raises IprofError (TRACE) when there is none."""
    if not path.is_dir():
        what = "is not a directory" if path.exists() else "does not exist"
        raise IprofError(f"the trace {path} {what}", ExitStatus.TRACE)
    directories = tuple(ctf_directories(path))
    if not directories:
        raise IprofError(f"{path} holds no trace: nothing was recorded, or it is another directory", ExitStatus.TRACE)
    return Trace(path, directories, _read_metadata(path))


def holds_ctf(path: Path) -> bool:
    """Whether LTTng wrote any trace below a directory."""
    return next(ctf_directories(path), None) is not None


def ctf_directories(path: Path) -> Iterator[Path]:
    """The directories below ``path`` that hold a CTF trace, in order of their names."""
    for directory, subdirectories, files in os.walk(path):
        subdirectories.sort()
        if _CTF_METADATA_FILE in files:
            yield Path(directory)


def _read_metadata(path: Path) -> RunMetadata | None:
    """The metadata of a trace's first host; every host of a run has the same run id."""
    for file in (path / METADATA_FILE, *sorted(path.glob(f"*/{METADATA_FILE}"))):
        try:
            return _parse_metadata(json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            continue
    return None


def _parse_metadata(document: dict[str, Any]) -> RunMetadata:
    known = {field.name: document[field.name] for field in fields(RunMetadata) if field.name in document}
    known["command"] = tuple(known.get("command", ()))
    return RunMetadata(**known)
