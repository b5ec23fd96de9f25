"""Where the native libraries of this installation are."""

from __future__ import annotations

from pathlib import Path

import iprof_py
from iprof_py.errors import ExitStatus, IprofError

PLUGIN_FILE = "babeltrace-plugin-iprof.so"


def find(file_name: str) -> Path:
    """The path of a native library; raises IprofError (SETUP) when it was not built.

    An editable installation has several package directories: the sources and the build's own.
    """
    for directory in iprof_py.__path__:
        candidate = Path(directory, "_native", file_name)
        if candidate.is_file():
            return candidate
    raise IprofError(
        f"{file_name} is missing from this installation: build it with `make setup` or `pip install .`",
        ExitStatus.SETUP,
    )
