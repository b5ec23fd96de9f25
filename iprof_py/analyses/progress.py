"""A progress bar on stderr, for analyses that take a while in front of somebody."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

_DELAY_S: Final = 1.0
_COUNTER_BYTES: Final = 8


class Progress:
    """Counts packets read through ``descriptor``, where a native sink keeps their number as a 64-bit integer."""

    def __init__(self, packets: int, size: int) -> None:
        self.descriptor = os.memfd_create("iprof-progress")
        self._packets = packets
        self._size = size
        self._start_s = time.monotonic()
        self._bar: Any = None
        self._shown = 0

    def update(self) -> None:
        """Move the bar; it appears when the work has taken a second already."""
        if self._bar is None:
            if time.monotonic() - self._start_s < _DELAY_S:
                return
            self._bar = click.progressbar(length=self._size, label="iprof-py: reading", file=sys.stderr)
        counter = os.pread(self.descriptor, _COUNTER_BYTES, 0)
        done = self._size * int.from_bytes(counter, sys.byteorder) // max(1, self._packets)
        self._bar.update(done - self._shown)
        self._shown = done

    def close(self) -> None:
        """Take the bar away."""
        os.close(self.descriptor)
        if self._bar is not None:
            sys.stderr.write("\r\033[K\033[?25h")  # clear the line, show the cursor again
            sys.stderr.flush()


@contextmanager
def progress(packets: int, size: int) -> Iterator[Progress | None]:
    """A bar for reading ``packets`` packets of ``size`` bytes together; None when stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = Progress(packets, size)
    try:
        yield bar
    finally:
        bar.close()
