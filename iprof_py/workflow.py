"""From settings to an exit status: record or open a trace, then analyse it."""

from __future__ import annotations

import os
from pathlib import Path

import click

from iprof_py import analyses, backends, traces
from iprof_py.errors import IprofError
from iprof_py.messages import log, notice
from iprof_py.recording import Recording, record
from iprof_py.settings import AnalysisSettings, DoctorSettings, ReplaySettings, RunSettings, Settings


def execute(settings: Settings) -> int:
    """Do what the settings say; the exit status. Raises IprofError when it cannot be done."""
    if isinstance(settings.source, DoctorSettings):
        return _examine(settings.source)
    if isinstance(settings.source, ReplaySettings):
        return _replay(settings.source, settings.analysis)
    return _run(settings.source, settings.analysis)


def _examine(source: DoctorSettings) -> int:
    from iprof_py import doctor  # a run should start without it

    findings = list(doctor.examine(source.command, os.environ))
    for finding in findings:
        click.echo(finding.line)
    return int(any(finding.problem and finding.fatal for finding in findings))


def _replay(source: ReplaySettings, analysis: AnalysisSettings | None) -> int:
    trace = traces.open_trace(source.path or traces.newest())
    notice(f"Trace location: {trace.path}")
    return analyses.analyse(trace, analysis) if analysis is not None else 0


def _run(source: RunSettings, analysis: AnalysisSettings | None) -> int:
    recording = record(source, analysis.backends if analysis else backends.DEFAULT)
    if analysis is not None and recording.trace is not None:
        _analyse_recording(recording, recording.trace, analysis)
    return recording.exit_status


def _analyse_recording(recording: Recording, path: Path, analysis: AnalysisSettings) -> None:
    """Analyse what was just recorded. The program's failure, if any, is the result, whatever the analysis does."""
    if recording.stopped_by:
        notice(f"no analysis after {recording.stopped_by}; make it with `iprof-py -r {path}`")
        return
    try:
        analyses.analyse(traces.open_trace(path), analysis)
    except IprofError as error:
        if recording.exit_status == 0:
            raise
        log.error("%s", error)
