"""The registry of backends: what can be traced, and under which names THAPI's users know it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from iprof_py.errors import ExitStatus, IprofError


@dataclass(frozen=True)
class Backend:
    """One kind of traced library."""

    name: str
    label: str  # in headings
    level: int  # tables of higher levels come first
    provider: str  # of its LTTng-UST events
    hook: str  # file name of the preloaded library

    @property
    def event_rule(self) -> str:
        """The pattern that enables its events."""
        return f"{self.provider}:*"


@dataclass(frozen=True)
class BackendRequest:
    """A backend chosen by the user, with the level of its table."""

    backend: Backend
    level: int


PYTORCH: Final = Backend("pytorch", "BACKEND_PYTORCH", 6, "lttng_ust_pytorch", "libiprof_pytorch.so")
BACKENDS: Final = {backend.name: backend for backend in (PYTORCH,)}
DEFAULT: Final = (BackendRequest(PYTORCH, PYTORCH.level),)


def parse(text: str) -> tuple[BackendRequest, ...]:
    """The backends named by ``name[:level],…``; raises IprofError (USAGE) for an unknown name or a bad level."""
    return tuple(_parse_one(part.strip()) for part in text.split(","))


def _parse_one(text: str) -> BackendRequest:
    name, colon, level = text.partition(":")
    backend = BACKENDS.get(name)
    if backend is None:
        raise IprofError(f"unknown backend {name!r} (known: {', '.join(BACKENDS)})", ExitStatus.USAGE)
    if not colon:
        return BackendRequest(backend, backend.level)
    if not level.isascii() or not level.isdigit():
        raise IprofError(f"the level of backend {name!r} must be a whole number, not {level!r}", ExitStatus.USAGE)
    return BackendRequest(backend, int(level))
