"""What the command line makes of its words, and how it refuses them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from iprof_py import cli
from iprof_py.settings import ReplaySettings, RunSettings, Settings


def parse(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Settings:
    parsed: list[Settings] = []

    def execute(settings: Settings) -> int:
        parsed.append(settings)
        return 0

    monkeypatch.setattr(cli, "execute", execute)
    cli.command.main(list(arguments), prog_name="iprof-py", standalone_mode=False)
    return parsed[0]


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["--", "python3", "-m", "foo", "-t"], ("python3", "-m", "foo", "-t")),
        (["python3", "-m", "foo", "-j"], ("python3", "-m", "foo", "-j")),
        (["-j", "x", "--", "y"], ("x", "--", "y")),
        (["--debug", "x"], ("x",)),
        (["--debug", "0", "x"], ("x",)),
        (["--python-log", "x"], ("x",)),
        (["--python-log", "INFO", "x"], ("x",)),
        (["--back", "pytorch:3", "x"], ("x",)),
        (["--trace_output", "/t", "x"], ("x",)),
        (["x", "--debug"], ("x", "--debug")),
    ],
)
def test_options_end_at_the_command(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], command: tuple[str, ...]
) -> None:
    source = parse(monkeypatch, *arguments).source
    assert isinstance(source, RunSettings)
    assert source.command == command


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (["--analysis", "tally"], None),
        (["--analysis"], None),
        (["-r"], None),
        (["-r", "-j"], None),
        (["-j", "-r", "T"], "T"),
        (["--replay=T", "-e"], "T"),
        (["--top", "3"], None),
    ],
)
def test_without_a_command_a_trace_is_replayed(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], path: str | None
) -> None:
    assert parse(monkeypatch, *arguments).source == ReplaySettings(Path(path) if path else None)


def test_values_of_options_are_not_shortened_names(monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = parse(monkeypatch, "--sort", "max", "x").analysis
    assert analysis is not None
    assert analysis.sort == "max"


def test_an_output_among_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = parse(monkeypatch, "--analysis", "flamegraph", "out.folded", "python3", "x.folded")
    assert settings.analysis is not None
    assert settings.analysis.output == Path("out.folded")
    assert settings.source == RunSettings(("python3", "x.folded"), None, None)


def test_traces_among_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = parse(monkeypatch, "--analysis", "compare", "A", "B")
    assert settings.analysis is not None
    assert (settings.analysis.base, settings.source) == (Path("A"), ReplaySettings(Path("B")))
    assert parse(monkeypatch, "--analysis", "compare", "A").source == ReplaySettings(None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--backends", "nosuch", "x"], "unknown backend 'nosuch' (known: pytorch)"),
        (["--analysis", "nosuch", "x"], "unknown analysis 'nosuch'"),
        (["--max-name-size", "x", "x"], "Invalid value for '--max-name-size'"),
        (["--max-name-size", "-2", "x"], "Invalid value for '--max-name-size'"),
        (["--top", "0"], "Invalid value for '--top'"),
        (["--sort", "nosuch"], "Invalid value for '--sort'"),
        (["--format", "xml"], "Invalid value for '--format'"),
        (["--columns", "p98"], "unknown column 'p98'"),
        (["--filter", "("], "is not a regular expression"),
        (["--debug", "7", "x"], "Invalid value for '--debug'"),
        (["--nosuch"], "No such option '--nosuch'"),
        (["--t", "x"], "No such option '--t'"),
        (["--an", "tally"], "ambiguous option --an: --analysis, --analysis-output"),
        (["-b"], "requires an argument"),
        (["--json=3"], "does not take a value"),
        (["--no-analysis"], "--no-analysis needs a command to run"),
        (["--no-analysis", "-j", "x"], "--no-analysis and --json cannot go together"),
        (["--no-analysis", "--analysis", "tally", "x"], "--no-analysis and --analysis cannot go together"),
        (["-j", "--format", "csv"], "--json and --format cannot go together"),
        (["-r", "T", "x"], "--replay takes no command"),
        (["-r", "T", "--trace-output", "O"], "--replay and --trace-output cannot go together"),
        (["--trace-output", "O"], "--trace-output needs a command to run"),
        (["--depth", "3"], "--depth is no option of the tally"),
        (["--analysis", "tree", "-j"], "--json is no option of the tree"),
        (["--analysis", "compare"], "needs BASE or BASE NEW"),
        (["--analysis", "compare", "a", "b", "c"], "needs BASE or BASE NEW"),
        (["--analysis", "flamegraph", "--analysis-output", "x.txt"], "must end in .folded or .speedscope.json"),
    ],
)
def test_bad_options_are_one_line_and_status_2(arguments: list[str], message: str) -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "iprof-py", *arguments], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("iprof-py: error: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


def test_nothing_asked_shows_the_help() -> None:
    done = subprocess.run([Path(sys.executable).parent / "iprof-py"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout.startswith("Usage: iprof-py")
