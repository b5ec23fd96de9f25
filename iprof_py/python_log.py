"""Records what a Python program logs, through LTTng's Python domain, without changing the program.

Its interpreter finds our ``sitecustomize`` first on PYTHONPATH, which starts the ``lttngust`` agent. That is Debian's
python3-lttngust: PyPI's 2.7.1 fails on Python 3.8 and later.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Final

from packaging.version import InvalidVersion, Version

from iprof_py.errors import ExitStatus, IprofError

# The levels that both logging and LTTng know, with their names in `lttng enable-event --python`.
LEVELS: Final = {name: getattr(logging, name) for name in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")}
DEFAULT_LEVEL: Final = "DEBUG"
CHANNEL: Final = "lttng_python_channel"

_OLDEST_AGENT: Final = Version("2.13")
_AGENT: Final = Path(__file__).parent / "_agent" / "sitecustomize.py"


def prepare(directory: Path, level: str) -> dict[str, str]:
    """Put the agent into a directory; the variables that lead a program's interpreter there.

    Raises IprofError (SETUP) when there is no usable lttngust.
    """
    package = _find_lttngust()
    place = directory / "python"
    place.mkdir(mode=0o700)
    shutil.copy(_AGENT, place)
    (place / "lttngust").symlink_to(package)
    return {"PYTHONPATH": str(place), "IPROF_PYTHON_LOG": str(LEVELS[level])}


def _find_lttngust() -> Path:
    from importlib import metadata  # slow to import, and seldom needed

    for distribution in metadata.distributions(name="lttngust"):
        package = Path(str(distribution.locate_file("lttngust")))
        if _is_new_enough(distribution.version) and package.is_dir():
            return package
    raise IprofError(
        f"--python-log needs lttngust {_OLDEST_AGENT} or newer, which is not on PyPI: apt install python3-lttngust, "
        f"and make the environment of iprof-py with `/usr/bin/python3 -m venv --system-site-packages`",
        ExitStatus.SETUP,
    )


def _is_new_enough(version: str) -> bool:
    try:
        return Version(version) >= _OLDEST_AGENT
    except InvalidVersion:
        return False
