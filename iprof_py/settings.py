"""What the user asked for, parsed once and never changed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from iprof_py.backends import BackendRequest


@dataclass(frozen=True)
class RunSettings:
    """A program to run and record."""

    command: tuple[str, ...]
    trace_output: Path | None  # None: a new directory in the user's trace home
    log_level: str | None  # record Python's log records from this level of python_log.LEVELS up; None: none


@dataclass(frozen=True)
class ReplaySettings:
    """A saved trace to analyse."""

    path: Path | None  # None: the newest in the user's trace home


@dataclass(frozen=True)
class DoctorSettings:
    """A look at the installation."""

    command: tuple[str, ...]  # whose torch to look for; empty: python3's


@dataclass(frozen=True)
class AnalysisSettings:
    """The analysis to do and how to show it."""

    name: str
    output: Path | None  # None: stdout
    backends: tuple[BackendRequest, ...]
    extended: bool  # a table for each thread
    max_name_size: int  # characters; -1: no limit
    format: str  # text, json, csv or markdown
    sort: str  # a key of columns.SORT_KEYS, or "name"
    top: int | None  # rows of each table; None: all
    filter: re.Pattern[str] | None  # of the names to show; None: all
    columns: tuple[str, ...]  # keys of columns.COLUMNS; empty: the usual ones
    by: str  # op, scope or phase
    depth: int | None  # levels of a tree to show; None: all
    base: Path | None  # the trace to compare with
    threshold: float | None  # percent of the base's self time that may be added; None: any


@dataclass(frozen=True)
class Settings:
    """One invocation: where the trace comes from, and what is done with it."""

    source: RunSettings | ReplaySettings | DoctorSettings
    analysis: AnalysisSettings | None
