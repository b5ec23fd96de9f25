from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path

import pytest

from iprof_py import traces
from iprof_py.errors import ExitStatus, IprofError
from iprof_py.traces import RunMetadata

START = datetime(2026, 12, 1, 3, 55, 19, tzinfo=timezone.utc)
METADATA = RunMetadata("1.0", "id", ("python3", "x y"), "host", "2026-12-01T03:55:19+00:00", shared_daemon=True)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("THAPI_HOME", str(tmp_path))
    return tmp_path / "thapi-traces"


def test_two_runs_in_a_second_do_not_collide(home: Path) -> None:
    created = [traces.create(None, START) for _ in range(3)]
    name = "thapi--2026-12-01T03:55:19+00:00"
    assert created == [home / name, home / f"{name}_1", home / f"{name}_2"]
    assert created[0].stat().st_mode & 0o777 == 0o700


def test_an_output_that_exists_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IprofError, match="exists already") as error:
        traces.create(tmp_path, START)
    assert error.value.status is ExitStatus.USAGE


def test_a_place_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IprofError, match="; give another with --trace-output") as error:
        traces.create(tmp_path / "file" / "trace", START)
    assert error.value.status is ExitStatus.OUTPUT


def test_metadata_round_trip(tmp_path: Path) -> None:
    trace = traces.create(None, START)
    directory = traces.prepare_host(trace, METADATA)
    (directory / "ctf").mkdir()
    (directory / "ctf" / "metadata").touch()
    opened = traces.open_trace(trace)
    assert opened.metadata == METADATA
    assert opened.ctf_directories == (directory / "ctf",)
    assert opened.run_filter == "id"


def test_metadata_of_another_version_is_read(tmp_path: Path) -> None:
    (tmp_path / "metadata").touch()
    (tmp_path / traces.METADATA_FILE).write_text(
        '{"version": "9", "run_id": "x", "command": [], "host": "h", "start": "", "shared_daemon": false, "new": 1}'
    )
    metadata = traces.open_trace(tmp_path).metadata
    assert metadata is not None
    assert metadata.version == "9"


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"version": 1}'])
def test_unreadable_metadata_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "metadata").touch()
    (tmp_path / traces.METADATA_FILE).write_text(text)
    assert traces.open_trace(tmp_path).metadata is None


def test_the_newest_is_by_time(home: Path) -> None:
    for name, age_s in (("thapi--b", 10), ("thapi--a", 5), ("other", 1)):
        (home / name).mkdir(parents=True)
        os.utime(home / name, (1e9 - age_s, 1e9 - age_s))
    assert traces.newest() == home / "thapi--a"


def test_the_home_is_the_users_without_thapi_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    assert traces.trace_home() == tmp_path / "thapi-traces"
    monkeypatch.setenv("THAPI_HOME", "")
    assert traces.trace_home() == tmp_path / "user/thapi-traces"
    monkeypatch.delenv("THAPI_HOME")
    assert traces.trace_home() == tmp_path / "user/thapi-traces"


def test_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THAPI_HOME")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000)  # a user without an entry
    with pytest.raises(IprofError, match="set THAPI_HOME or give --trace-output"):
        traces.create(None, START)
