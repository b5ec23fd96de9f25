"""The trace itself: a line of text for each event, in THAPI's format."""

from __future__ import annotations

from typing import TextIO

from iprof_py.analyses import graph
from iprof_py.settings import AnalysisSettings
from iprof_py.traces import Trace


def run(trace: Trace, _: AnalysisSettings, output: TextIO) -> int:
    """Write the lines."""
    graph.run_into("trace", trace, {}, output)
    return 0
