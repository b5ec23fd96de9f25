"""The command line: options become settings, which the rest of the package acts on."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click

from iprof_py import VERSION, analyses, backends, messages, python_log
from iprof_py.analyses import columns
from iprof_py.errors import ExitStatus, IprofError
from iprof_py.launcher import InterruptedEarlyError
from iprof_py.messages import log, warn
from iprof_py.settings import AnalysisSettings, DoctorSettings, ReplaySettings, RunSettings, Settings
from iprof_py.workflow import execute

_NEWEST = "<newest>"
_ANALYSIS_HELP = "; ".join(f"{analysis.name}: {analysis.summary}" for analysis in analyses.ANALYSES.values())
_EPILOG = """\b
Exit status: that of COMMAND, 128+N when signal N killed it; otherwise
  1    compare: the new trace is over the threshold
  2    a bad option or argument
  3    a part is missing: LTTng, bt2, the native libraries
  4    no LTTng session could be made
  5    a trace is missing or unreadable
  6    a file or directory cannot be written
  126  COMMAND cannot be executed
  127  COMMAND was not found

\b
Examples:
  iprof-py -- python3 model.py            record the program, print its tally
  iprof-py --analysis tally               the newest trace again
  iprof-py -r PATH -e                     a saved trace, a table a thread
  iprof-py doctor [COMMAND]               is everything there that a run needs?"""


class _OptionalWord(click.Option):
    """An option whose value may be left out; the next word is its value only when ``accepts`` says so."""

    def __init__(self, *names: Any, accepts: Callable[[str], bool], **settings: Any) -> None:
        super().__init__(*names, **settings)
        self._accepts = accepts

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        super().add_to_parser(parser, ctx)
        for name in self.opts:
            option = parser._long_opt[name]
            option.process = self._returning_other_words(option.process)

    def _returning_other_words(self, process: Any) -> Any:
        def take(value: Any, state: Any) -> None:
            if isinstance(value, str) and not self._accepts(value):
                state.rargs.insert(0, value)
                value = self.flag_value
            process(value, state)

        return take


class _Choice(click.Choice[str]):
    """A choice whose values are taken as they are: only names of options may be shortened."""

    def normalize_choice(self, choice: object, ctx: click.Context | None) -> str:
        return str(choice)


def _long_names(command: click.Command) -> list[str]:
    names = [name for option in command.params for name in (*option.opts, *option.secondary_opts)]
    return ["help", *(name[2:] for name in names if name.startswith("--"))]


def _spell_out(token: str) -> str:
    """The full name of a long option from a unique beginning of it; ``_`` counts as ``-``."""
    token = token.replace("_", "-")
    names = _long_names(command)
    candidates = [name for name in names if name.startswith(token)]
    if len(token) == 1 or token in names or not candidates:
        return token
    if len(candidates) > 1:
        listed = ", ".join(f"--{name}" for name in candidates)
        raise click.UsageError(f"ambiguous option --{token}: {listed}")
    return candidates[0]


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"iprof-py {VERSION}")
        ctx.exit()


@click.command(
    context_settings={
        "allow_interspersed_args": False,
        "help_option_names": ["-h", "--help"],
        "max_content_width": 110,
    },
    epilog=_EPILOG,
)
@click.option(
    "--analysis",
    is_flag=False,
    flag_value=analyses.DEFAULT,
    metavar="[NAME]",
    help=_ANALYSIS_HELP,
)
@click.option("--no-analysis", is_flag=True, help="Keep the trace and print nothing.")
@click.option("-t", "--trace", is_flag=True, help="The trace, a line an event: --analysis trace.")
@click.option(
    "-l",
    "--timeline",
    is_flag=False,
    flag_value=analyses.DEFAULT_TIMELINE,
    metavar="[PATH]",
    help=f"A timeline in PATH, whose name ends in {', '.join(analyses.TIMELINE_ENDINGS)}."
    f"  [PATH: {analyses.DEFAULT_TIMELINE}]",
)
@click.option(
    "-b",
    "--backends",
    metavar="NAME[:LEVEL],…",
    help="What to trace, and the level of its table.  [default: pytorch:6]",
)
@click.option(
    "-r",
    "--replay",
    is_flag=False,
    flag_value=_NEWEST,
    metavar="[PATH]",
    help="Analyse a saved trace; without PATH the newest.",
)
@click.option("-j", "--json", is_flag=True, help="The tally as JSON: --format json.")
@click.option(
    "--format", type=_Choice(["text", "json", "csv", "markdown"]), help="How the tally looks.  [default: text]"
)
@click.option(
    "--sort", type=_Choice([*columns.SORT_KEYS, "name"]), help="What its rows are sorted by.  [default: time]"
)
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Only the first N rows of each table.")
@click.option("--filter", metavar="REGEX", help="Only operators and scopes whose name matches.")
@click.option("--columns", metavar="NAME,…", help=f"The columns to show: {', '.join(columns.COLUMNS)}.")
@click.option(
    "--by",
    type=_Choice(["op", "scope", "phase"]),
    help="A table for each record_function scope, or for forward, backward and other.  [default: op]",
)
@click.option("--depth", type=click.IntRange(min=1), metavar="N", help="Only the first N levels of the tree.")
@click.option(
    "--threshold",
    type=click.FloatRange(min=0),
    metavar="PERCENT",
    help="compare: exit status 1 when more than PERCENT of BASE's self time is added.",
)
@click.option("-e", "--extended", is_flag=True, help="A table for each process and thread.")
@click.option(
    "--max-name-size",
    type=click.IntRange(min=-1),
    default=None,
    metavar="N",
    help="Shorten names to N characters; -1: never.  [default: 80]",
)
@click.option(
    "--python-log",
    cls=_OptionalWord,
    accepts=python_log.LEVELS.__contains__,
    is_flag=False,
    flag_value=python_log.DEFAULT_LEVEL,
    metavar="[LEVEL]",
    help=f"Record what Python programs log, from LEVEL up: {', '.join(python_log.LEVELS)}.  [LEVEL: DEBUG]",
)
@click.option(
    "--trace-output",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Where the trace goes; must not exist.  [default: $THAPI_HOME or $HOME, thapi-traces/]",
)
@click.option(
    "--analysis-output",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Where the analysis goes.  [default: stdout]",
)
@click.option(
    "--debug",
    cls=_OptionalWord,
    accepts=str.isdigit,
    is_flag=False,
    flag_value="1",
    type=click.IntRange(0, 4),
    default=messages.DEFAULT_LEVEL,
    metavar="[LEVEL]",
    help="Say what is done: 0 everything, 1 commands and variables (when LEVEL is left out), 2 warnings, 3 errors.",
)
@click.option(
    "-v",
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Print the version.",
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[--] [COMMAND [ARGUMENT]…]")
@click.pass_context
def command(ctx: click.Context, /, debug: int, **options: Any) -> int:
    """Run COMMAND, record the operators of every PyTorch program in it, and print where the time went."""
    messages.configure(debug)
    settings = _settings(options)
    if settings is None:
        click.echo(ctx.get_help())
        return ExitStatus.USAGE
    return execute(settings)


command.context_settings["token_normalize_func"] = _spell_out


def _settings(options: dict[str, Any]) -> Settings | None:
    """The settings that the options describe; None when nothing was asked for."""
    analysis = _chosen_analysis(options)
    _refuse_conflicts(options, analysis)
    output, base, options["words"] = _divide_words(options, analysis)
    source = _source(options)
    if source is None:
        return None
    return Settings(source, None if options["no_analysis"] else _analysis(options, analysis, output, base))


def _chosen_analysis(options: dict[str, Any]) -> analyses.Analysis:
    """The analysis that was named, or stands for an option of its own: -t, -l."""
    if options["timeline"] is not None and options["analysis_output"] is None:
        options["analysis_output"] = Path(options["timeline"])
    chosen = [options["analysis"], "trace" if options["trace"] else None, "timeline" if options["timeline"] else None]
    named = [name for name in chosen if name is not None]
    if len(named) > 1:
        raise click.UsageError(f"one analysis at a time, not {' and '.join(named)}")
    options["analysis"] = name = named[0] if named else None
    name = name or analyses.DEFAULT
    if name not in analyses.ANALYSES:
        raise click.UsageError(f"unknown analysis {name!r} (known: {', '.join(analyses.ANALYSES)})")
    return analyses.ANALYSES[name]


def _divide_words(
    options: dict[str, Any], analysis: analyses.Analysis
) -> tuple[Path | None, Path | None, tuple[str, ...]]:
    """The output and the base trace that the words name, and the words of the command."""
    words, output = options["words"], options["analysis_output"]
    if analysis.words is analyses.Words.OUTPUT_AND_COMMAND and words and words[0].endswith(analysis.endings):
        if output is not None:
            raise click.UsageError(f"the output is given twice: {words[0]} and --analysis-output {output}")
        return Path(words[0]), None, words[1:]
    if analysis.words is analyses.Words.TRACES:
        return output, _base_trace(options), ()
    return output, None, words


def _base_trace(options: dict[str, Any]) -> Path:
    words = options["words"]
    if not 1 <= len(words) <= 2 or (len(words) == 2 and options["replay"] is not None):
        raise click.UsageError(f"--analysis {options['analysis']} needs BASE or BASE NEW, two saved traces")
    if len(words) == 2:
        options["replay"] = words[1]
    return Path(words[0])


def _source(options: dict[str, Any]) -> RunSettings | ReplaySettings | DoctorSettings | None:
    words, replay = options["words"], options["replay"]
    if words[:1] == ("doctor",):
        return DoctorSettings(words[1:])
    if words:
        _warn_of_launcher(words)
        return RunSettings(tuple(words), options["trace_output"], options["python_log"])
    for name in ("trace_output", "no_analysis", "python_log"):
        if _is_given(options[name]):
            raise click.UsageError(f"{_option(name)} needs a command to run")
    if replay is not None:
        return ReplaySettings(None if replay == _NEWEST else Path(replay))
    return ReplaySettings(None) if any(_is_given(options[name]) for name in _ANALYSIS_OPTIONS) else None


def _analysis(
    options: dict[str, Any], analysis: analyses.Analysis, output: Path | None, base: Path | None
) -> AnalysisSettings:
    if output is None and analysis.default_output is not None:
        output = Path(analysis.default_output)
    if analysis.endings and output is not None and not output.name.endswith(analysis.endings):
        raise click.UsageError(f"the output of {analysis.name} must end in {' or '.join(analysis.endings)}: {output}")
    return AnalysisSettings(
        name=analysis.name,
        output=output,
        backends=backends.parse(options["backends"]) if options["backends"] else backends.DEFAULT,
        extended=options["extended"],
        max_name_size=80 if options["max_name_size"] is None else options["max_name_size"],
        format="json" if options["json"] else options["format"] or "text",
        sort=options["sort"] or "time",
        top=options["top"],
        filter=_pattern(options["filter"]),
        columns=tuple(column.name for column in columns.parse(options["columns"])) if options["columns"] else (),
        by=options["by"] or "op",
        depth=options["depth"],
        base=base,
        threshold=options["threshold"],
    )


def _pattern(text: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(text) if text is not None else None
    except re.error as error:
        raise click.UsageError(f"--filter {text!r} is not a regular expression: {error}") from None


# Settings of one analysis or another; which takes which is in the registry of analyses.
_OWN_OPTIONS = frozenset().union(*(analysis.options for analysis in analyses.ANALYSES.values()))
_ANALYSIS_OPTIONS = ("analysis", "analysis_output", *sorted(_OWN_OPTIONS))


def _is_given(value: Any) -> bool:
    return value is not None and value is not False


def _refuse_conflicts(options: dict[str, Any], analysis: analyses.Analysis) -> None:
    """Options that cannot go together are an error: none silently wins."""
    for first, seconds in (
        ("no_analysis", (*_ANALYSIS_OPTIONS, "replay")),
        ("replay", ("trace_output", "python_log")),
        ("json", ("format",)),
    ):
        for second in seconds:
            if _is_given(options[first]) and _is_given(options[second]):
                raise click.UsageError(f"{_option(first)} and {_option(second)} cannot go together")
    for name in sorted(_OWN_OPTIONS - analysis.options):
        if _is_given(options[name]):
            raise click.UsageError(f"{_option(name)} is no option of the {analysis.name}")
    if options["replay"] is not None and options["words"] and analysis.words is analyses.Words.COMMAND:
        raise click.UsageError("--replay takes no command: it analyses a trace that was saved before")


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _warn_of_launcher(words: tuple[str, ...]) -> None:
    launcher = Path(words[0]).name
    if launcher in ("mpirun", "mpiexec"):
        warn(f"`iprof-py {launcher} …` records one host as one run; the usual order is `{launcher} … iprof-py -- …`")


def main() -> NoReturn:
    """Run the command line, and turn what a user can cause into one line and an exit status."""
    messages.configure(messages.DEFAULT_LEVEL)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(_main())


def _main() -> int:
    try:
        return int(command.main(prog_name="iprof-py", standalone_mode=False) or 0)
    except click.UsageError as error:
        log.error("%s", error.format_message())
        return ExitStatus.USAGE
    except click.ClickException as error:
        log.error("%s", error.format_message())
        return ExitStatus.OUTPUT
    except IprofError as error:
        log.error("%s", error)
        return error.status
    except InterruptedEarlyError as interrupt:
        return 128 + interrupt.signal_number
    except click.Abort:
        log.error("interrupted")
        return ExitStatus.INTERRUPTED
