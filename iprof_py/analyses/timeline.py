"""The timeline: every call as a slice on the track of its thread, for Perfetto and for what reads Chrome's traces."""

from __future__ import annotations

from typing import Final, TextIO

from iprof_py.analyses import graph
from iprof_py.messages import notice
from iprof_py.settings import AnalysisSettings
from iprof_py.traces import Trace

_CHROME_ENDINGS: Final = (".json", ".json.gz")


def run(trace: Trace, settings: AnalysisSettings, output: TextIO) -> int:
    """Write the timeline into the file behind ``output``."""
    name = str(settings.output)
    parameters = {"chrome": name.endswith(_CHROME_ENDINGS), "gzip": name.endswith(".gz")}
    graph.run_into("timeline", trace, parameters, output)
    notice(f"{'Chrome' if parameters['chrome'] else 'Perfetto'} trace location: {settings.output}")
    return 0
