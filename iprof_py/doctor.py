"""Looks at the installation and says, line by line, what a run needs and whether it is there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from iprof_py import backends, buffers, launcher, native, private, torch_locate, traces
from iprof_py.daemon import session_daemon
from iprof_py.errors import IprofError


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    subject: str
    problem: str | None  # what is wrong and what to do; None: nothing
    detail: str = ""
    fatal: bool = True  # whether a run would fail

    @property
    def line(self) -> str:
        """The finding as a line."""
        if self.problem is None:
            return f"ok       {self.subject}{': ' if self.detail else ''}{self.detail}"
        return f"{'missing ' if self.fatal else 'warning '} {self.subject}: {self.problem}"


def examine(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Finding]:
    """Look at everything that a run of ``command`` needs; ``python3`` stands for it when it is empty."""
    yield _tool("lttng", "lttng-tools")
    yield _tool("lttng-sessiond", "lttng-tools")
    yield _library("liblttng-ust.so.1", "liblttng-ust1")
    yield _library(launcher.FORK_LIBRARY, "liblttng-ust1")
    yield _guarded("hook", lambda: str(native.find(backends.PYTORCH.hook)))
    yield _guarded("analysis plugin", lambda: str(native.find(native.PLUGIN_FILE)))
    yield _bt2()
    yield _guarded("trace directory", _trace_home)
    yield _guarded("session daemon", _session_daemon)
    yield _shared_memory()
    yield _torch(command or ("python3",), environment)


def _tool(name: str, package: str) -> Finding:
    path = shutil.which(name)
    if path is None:
        return Finding(name, f"not on PATH; Debian has it in {package}")
    words = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"\d+\.\d+[.\d]*", words)
    return Finding(name, None, f"{version.group() if version else 'version not known'}, {path}")


def _library(name: str, package: str) -> Finding:
    # Asked of the loader in another process: lttng-ust starts threads in the process that loads it.
    probe = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({name!r})"]
    found = subprocess.run(probe, capture_output=True, check=False).returncode == 0
    return Finding(name, None if found else f"the loader does not find it; Debian has it in {package}")


def _bt2() -> Finding:
    try:
        import bt2
    except ImportError as error:
        remedy = "install python3-bt2; make the environment with `/usr/bin/python3 -m venv --system-site-packages`"
        return Finding("bt2", f"{error}; {remedy}")
    return Finding("bt2", None, str(bt2.__version__))


def _guarded(subject: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(subject, None, look())
    except IprofError as error:
        return Finding(subject, str(error))


def _trace_home() -> str:
    home = traces.trace_home()
    place = home
    while not place.exists():
        place = place.parent
    if not os.access(place, os.W_OK | os.X_OK):
        raise traces.cannot_create(home, PermissionError(13, os.strerror(13)))
    free_gb = shutil.disk_usage(place).free / 1e9
    return f"{home}, {free_gb:.1f} GB free"


def _session_daemon() -> str:
    with private.private_directory(os.urandom(8).hex()) as directory, session_daemon(directory) as client:
        return f"answers in {client.run_directory}" if client.answers() else "started"


def _shared_memory() -> Finding:
    size = buffers.sub_buffer_bytes()
    return Finding("shared memory", buffers.shortage()) if size is None else Finding("shared memory", None)


def _torch(command: Sequence[str], environment: Mapping[str, str]) -> Finding:
    try:
        location = torch_locate.locate(command, environment)
    except IprofError as error:
        return Finding("torch", str(error))
    if isinstance(location, torch_locate.NoTorch):
        return Finding("torch", f"{location.interpreter} has none", fatal=False)
    if isinstance(location, torch_locate.UnknownTorch):
        return Finding("torch", None, f"{command[0]} is no Python: the hook finds its torch when it runs")
    check = torch_locate.check_version(location.version)
    if check.warning:
        return Finding("torch", check.warning, fatal=not check.preload)
    return Finding("torch", None, f"{location.version or 'version not known'} in {location.library_directory}")
