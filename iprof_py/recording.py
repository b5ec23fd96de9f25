"""Records one run of a program: the session around it, the hook inside it, and the trace directory that results."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from iprof_py import VERSION, buffers, ctf, launcher, native, python_log, torch_locate, traces
from iprof_py.backends import BackendRequest
from iprof_py.daemon import session_daemon
from iprof_py.messages import notice, warn
from iprof_py.private import is_preloadable, private_directory
from iprof_py.session import Session, SessionPlan, recording_session
from iprof_py.settings import RunSettings


@dataclass(frozen=True)
class Recording:
    """A finished run."""

    trace: Path | None  # None: nothing was recorded
    exit_status: int
    stopped_by: str | None  # why no analysis should follow


def record(settings: RunSettings, backends: Sequence[BackendRequest]) -> Recording:
    """Run a command and record it. Raises IprofError when it cannot be run or recorded."""
    with launcher.signals_held():
        return _record(settings, backends)


def _record(settings: RunSettings, backends: Sequence[BackendRequest]) -> Recording:
    location = torch_locate.locate(settings.command, os.environ)
    version = location.version if isinstance(location, torch_locate.Torch) else None
    check = torch_locate.check_version(version)
    if check.warning:
        warn(check.warning)
    sub_buffer_bytes = buffers.sub_buffer_bytes()
    if sub_buffer_bytes is None:
        warn(f"{buffers.shortage()}: nothing is recorded")
    if sub_buffer_bytes is None or not check.preload:
        outcome = launcher.run(settings.command, os.environ)
        return Recording(None, outcome.exit_status, outcome.stopped_by)
    hooks = [native.find(request.backend.hook) for request in backends]
    started = datetime.now(timezone.utc).astimezone()
    metadata = traces.RunMetadata(
        version=VERSION,
        run_id=os.urandom(8).hex(),
        command=settings.command,
        host=traces.host_name(),
        start=started.isoformat(timespec="milliseconds"),
        shared_daemon=False,
        torch_version=version,
    )
    with _trace_directory(settings.trace_output, started) as trace:
        outcome = _run_traced(settings, backends, hooks, location, trace, metadata, sub_buffer_bytes)
        if not _is_empty(trace):
            notice(f"Trace location: {trace}")
            return Recording(trace, outcome.exit_status, outcome.stopped_by)
    notice(f"no PyTorch operator was recorded: {_why_nothing(location)}")
    if settings.trace_output is None:
        traces.remove(trace)
    return Recording(None, outcome.exit_status, outcome.stopped_by)


def _run_traced(
    settings: RunSettings,
    backends: Sequence[BackendRequest],
    hooks: Sequence[Path],
    location: torch_locate.Location,
    trace: Path,
    metadata: traces.RunMetadata,
    sub_buffer_bytes: int,
) -> launcher.Outcome:
    from_variable = isinstance(location, torch_locate.Torch) and location.from_variable
    library_directory = location.library_directory if from_variable else None  # type: ignore[union-attr]
    rules = [request.backend.event_rule for request in backends]
    with private_directory(metadata.run_id) as private, session_daemon(private) as client:
        metadata = replace(metadata, shared_daemon=client.is_shared)
        directory = traces.prepare_host(trace, metadata)
        variables = launcher.hook_variables(
            [_preloadable(hook, private) for hook in hooks],
            metadata.run_id,
            library_directory,
            client.variables,
        )
        if settings.log_level is not None:
            variables |= python_log.prepare(private, settings.log_level)
        environment = launcher.merge_environment(os.environ, variables)
        plan = SessionPlan(private.name, directory, tuple(rules), settings.log_level, sub_buffer_bytes)
        with recording_session(client, plan) as session:
            outcome = launcher.run(settings.command, environment)
    _report_losses(session)
    ended = datetime.now(timezone.utc).astimezone().isoformat(timespec="milliseconds")
    _write_end(
        directory,
        replace(
            metadata,
            end=ended,
            exit_status=outcome.exit_status,
            discarded_events=session.discarded_events,
            lost_packets=session.lost_packets,
        ),
    )
    return outcome


@contextmanager
def _trace_directory(output: Path | None, start: datetime) -> Iterator[Path]:
    """Make the trace directory, and delete it again when the run fails before anything is in it."""
    trace = traces.create(output, start)
    try:
        yield trace
    except BaseException:
        if not traces.holds_ctf(trace):
            traces.remove(trace)
        raise


def _preloadable(hook: Path, private: Path) -> Path:
    """A path of the hook that LD_PRELOAD can hold."""
    if is_preloadable(str(hook)):
        return hook
    link = private / hook.name
    link.symlink_to(hook)
    return link


def _report_losses(session: Session) -> None:
    if session.discarded_events or session.lost_packets:
        warn(
            f"LTTng lost {session.discarded_events} events and {session.lost_packets} packets: the trace is incomplete"
        )


def _write_end(directory: Path, metadata: traces.RunMetadata) -> None:
    try:
        traces.write_metadata(directory, metadata)
    except OSError as error:
        warn(f"cannot complete {directory / traces.METADATA_FILE}: {error.strerror}")


def _is_empty(trace: Path) -> bool:
    return not any(ctf.holds_events(directory) for directory in traces.ctf_directories(trace))


def _why_nothing(location: torch_locate.Location) -> str:
    if isinstance(location, torch_locate.NoTorch):
        return f"{location.interpreter} has no torch"
    return "the program loaded no torch, or ran no operator"
