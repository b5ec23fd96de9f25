"""The LTTng session around a run: made before the program starts, and ended without waiting longer than needed."""

from __future__ import annotations

import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from iprof_py import buffers, python_log
from iprof_py.errors import IprofError
from iprof_py.lttng import Client
from iprof_py.messages import log, warn
from iprof_py.watch import watching

_CHANNEL: Final = "blocking-channel"
# How long a program waits for room in full buffers before it drops an event: longer than a disk is busy, and an end to
# the waiting when the consumer daemon dies.
_BLOCKING_LIMIT_US: Final = 10_000_000
_PENDING_LIMIT_S: Final = 60.0
# Without a timer the trace's own description reaches the disk when the program ends, and mostly costs the end of the
# session 0.2 s of waiting for it; with one, a trace is readable from early on, whatever dies.
_METADATA_PERIOD_US: Final = 100_000


@dataclass
class Session:
    """A session that records; what was lost is known once it has ended."""

    name: str
    discarded_events: int = 0
    lost_packets: int = 0
    broken: bool = False  # recording ended early


@dataclass(frozen=True)
class SessionPlan:
    """What to record, and where."""

    name: str
    output: Path
    event_rules: tuple[str, ...]
    log_level: str | None  # of Python's log records, a key of python_log.LEVELS; None: do not record them
    sub_buffer_bytes: int


@contextmanager
def recording_session(client: Client, plan: SessionPlan) -> Iterator[Session]:
    """Record as planned while the block runs.

    The channel makes the program wait while its buffers are full, so that no event is dropped. The session is destroyed
    whatever happens in the block. Raises IprofError (SESSION) when it cannot be made.
    """
    client.run("create", plan.name, f"--output={plan.output}")
    session = Session(plan.name)
    try:
        _start(client, plan)
        try:
            with watching(client.daemon_pid, plan.output, partial(_give_up, client, session)):
                yield session
        finally:
            _stop(client, session)
    finally:
        _destroy(client, plan.name)


def _start(client: Client, plan: SessionPlan) -> None:
    target = ("--userspace", f"--session={plan.name}")
    channel = f"--channel={_CHANNEL}"
    contexts = ("--type=vpid", "--type=vtid")
    buffers_size = (f"--num-subbuf={buffers.COUNT}", f"--subbuf-size={plan.sub_buffer_bytes}")
    client.run("enable-channel", *target, f"--switch-timer={_METADATA_PERIOD_US}", "metadata")
    client.run("enable-channel", *target, *buffers_size, f"--blocking-timeout={_BLOCKING_LIMIT_US}", _CHANNEL)
    client.run("add-context", *target, channel, *contexts)
    for rule in plan.event_rules:
        client.run("enable-event", *target, channel, rule)
    if plan.log_level is not None:
        level = f"--loglevel={plan.log_level}"
        client.run("enable-event", "--python", f"--session={plan.name}", "--all", level)
        client.run("add-context", *target, f"--channel={python_log.CHANNEL}", *contexts)
    client.run("start", plan.name)


def _give_up(client: Client, session: Session, failure: str) -> None:
    """Tell the program's processes to stop recording, so that they do not wait for room in the buffers for ever."""
    session.broken = True
    warn(f"{failure}: what the program does from now on is not recorded")
    with suppress(IprofError):
        client.stop(session.name)


def _stop(client: Client, session: Session) -> None:
    """Stop recording; a failure is a warning, for the program's result must not be lost."""
    try:
        if not session.broken:
            client.stop(session.name)
            _wait_for_data(client, session.name)
        listing = client.run("--mi", "xml", "list", session.name)
        session.discarded_events = _sum_of(listing, "discarded_events")
        session.lost_packets = _sum_of(listing, "lost_packets")
    except IprofError as error:
        if not session.broken:
            warn(f"the end of the trace may be missing: {error}")


def _destroy(client: Client, name: str) -> None:
    try:
        client.run("destroy", "--no-wait", name)
    except IprofError as error:
        log.info("the session was gone already: %s", error)


def _wait_for_data(client: Client, name: str) -> None:
    deadline = time.monotonic() + _PENDING_LIMIT_S
    pause_s = 0.001
    while client.data_pending(name):
        if time.monotonic() > deadline:
            warn(f"the trace was not complete on disk after {_PENDING_LIMIT_S:.0f} s")
            return
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, 0.05)


def _sum_of(listing: str, tag: str) -> int:
    """The sum over all elements of one tag in LTTng's machine interface listing."""
    root = ElementTree.fromstring(listing)  # noqa: S314 - the daemon's own output
    numbers = (element.text for element in root.iter() if element.tag.rpartition("}")[2] == tag)
    return sum(int(number) for number in numbers if number)
