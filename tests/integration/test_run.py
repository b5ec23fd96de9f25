"""Running a program: its streams, signals and exit status, and what is left behind."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from conftest import IPROF, PROGRAMS, TORCH, TORCH_PYTHON, Iprof, companions, path_without, run_in

from iprof_py import private, torch_locate

LIBRARIES = next((TORCH / "lib").glob("python3*/site-packages/torch/lib"))
WAITING = PROGRAMS / "waiting.py"


def test_a_program_without_torch(iprof: Iprof) -> None:
    run = iprof("--", "true")
    assert (run.status, run.stdout) == (0, "")
    assert run.stderr.splitlines() == [
        "iprof-py: no PyTorch operator was recorded: the program loaded no torch, or ran no operator"
    ]
    assert run.traces == []


def test_a_python_without_torch(iprof: Iprof) -> None:
    run = iprof("--", sys.executable, "-c", "print('x')")
    assert (run.status, run.stdout) == (0, "x\n")
    assert run.messages == [f"no PyTorch operator was recorded: {sys.executable} has no torch"]


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["sh", "-c", "exit 55"], 55),
        (["sh", "-c", "kill -9 $$"], 137),
        (["sh", "-c", "kill -2 $$"], 130),
        (["no-such-command"], 127),
        (["/etc"], 126),
    ],
)
def test_exit_status(iprof: Iprof, command: list[str], status: int) -> None:
    assert iprof("--no-analysis", "--", *command).status == status


def test_a_command_that_is_not_there_leaves_one_line(iprof: Iprof) -> None:
    run = iprof("--", "no-such-command")
    assert run.stderr == "iprof-py: error: no-such-command: command not found, or the interpreter that it names\n"
    assert run.traces == []


def test_a_script_without_a_first_line_runs_as_in_a_shell(iprof: Iprof, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("echo $1; exit 3\n")
    script.chmod(0o755)
    run = iprof("--no-analysis", "--", script, "word")
    assert (run.status, run.stdout) == (3, "word\n")


def test_standard_streams_pass_through(iprof: Iprof) -> None:
    run = iprof("--no-analysis", "--", "sh", "-c", "cat; echo error >&2", input="FOO\nBAR")
    assert run.stdout == "FOO\nBAR"
    assert "error\n" in run.stderr


def test_the_output_is_the_same_to_the_byte(tmp_path: Path) -> None:
    program = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 40_000)"
    done = subprocess.run(
        [IPROF, "--no-analysis", "--", sys.executable, "-c", program],
        env={**os.environ, "THAPI_HOME": str(tmp_path)},
        capture_output=True,
        check=False,
    )
    assert done.stdout == bytes(range(256)) * 40_000


def test_the_program_has_the_terminal(tmp_path: Path) -> None:
    program = "import os, sys; print([os.isatty(i) for i in range(3)], os.tcgetpgrp(0) == os.getpgrp())"
    with in_terminal(tmp_path, "--no-analysis", "--", sys.executable, "-c", program) as (process, terminal):
        output = read_all(terminal)
        assert process.wait() == 0
    assert b"[True, True, True] True" in output


@contextmanager
def in_terminal(home: Path, *arguments: object) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run iprof-py as the foreground job of a terminal of its own."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [IPROF, *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "THAPI_HOME": str(home)},
        start_new_session=True,
        preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),  # makes it the controlling terminal
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_all(terminal: int) -> bytes:
    output = b""
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            return output
        if not data:
            return output
        output += data


def test_an_interrupt_reaches_the_program_and_the_analysis_follows(tmp_path: Path) -> None:
    fifo = make_fifo(tmp_path)
    with in_terminal(tmp_path, "--", TORCH_PYTHON, WAITING, fifo) as (process, terminal):
        assert fifo.read_text() == "ready"
        os.write(terminal, b"\x03")
        output = read_all(terminal)
        assert process.wait() == 7
    assert b"aten::neg" in output
    assert b"aten::abs" in output  # the program's handler ran


def make_fifo(directory: Path) -> Path:
    fifo = directory / "fifo"
    os.mkfifo(fifo)
    return fifo


def start(
    home: Path, *arguments: object, output: int = subprocess.PIPE, before: Sequence[str] = ()
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*before, IPROF, *map(str, arguments)],
        env={**os.environ, "THAPI_HOME": str(home)},
        stdout=output,
        stderr=output,
        text=True,
    )


@contextmanager
def machine(own_machine: list[str]) -> Iterator[tuple[list[str], Callable[[], set[int]]]]:
    """A machine for several runs: what starts a command on it, and what tells the processes on it."""
    with subprocess.Popen(
        [*own_machine, "sh", "-c", "readlink /proc/self/ns/mnt; read line"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as keeper:
        assert keeper.stdin and keeper.stdout
        namespace = keeper.stdout.readline().strip()

        def processes() -> set[int]:
            return companions(namespace) - {keeper.pid}

        try:
            yield ["nsenter", f"--mount=/proc/{keeper.pid}/ns/mnt", f"--wdns={Path.cwd()}"], processes
        finally:
            for pid in processes():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            keeper.communicate("end\n")


def test_a_termination_is_passed_on_and_keeps_the_trace(tmp_path: Path) -> None:
    fifo = make_fifo(tmp_path)
    process = start(tmp_path, "--", TORCH_PYTHON, WAITING, fifo)
    assert fifo.read_text() == "ready"
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 143
    assert output == ""
    assert "no analysis after SIGTERM; make it with `iprof-py -r " in errors
    assert run_in(tmp_path, "-j").tally["aten::neg"]["call"] == 1


def test_an_interrupt_from_a_process_is_passed_on(tmp_path: Path) -> None:
    fifo = make_fifo(tmp_path)
    process = start(tmp_path, "-j", "--", TORCH_PYTHON, WAITING, fifo)
    assert fifo.read_text() == "ready"
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 7
    assert '"aten::abs"' in output


def test_two_interrupts_kill_the_program_and_keep_the_trace(tmp_path: Path) -> None:
    fifo = make_fifo(tmp_path)
    stubborn = (
        "import signal, sys, torch; signal.signal(signal.SIGINT, signal.SIG_IGN); torch.neg(torch.ones(3));"
        "open(sys.argv[1], 'w').write('ready'); signal.pause()"
    )
    process = start(tmp_path, "--", TORCH_PYTHON, "-c", stubborn, fifo)
    assert fifo.read_text() == "ready"
    process.send_signal(signal.SIGINT)
    wait_until(lambda: not pending(process.pid, signal.SIGINT))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 137
    assert "no analysis after a second interrupt" in errors
    assert run_in(tmp_path, "-j").tally["aten::neg"]["call"] == 1


def pending(pid: int, number: int) -> bool:
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line
    )
    return bool(int(status["ShdPnd"], 16) >> (number - 1) & 1)


def wait_until(condition: object) -> None:
    deadline = time.monotonic() + 30
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_traces_go_where_they_should(iprof: Iprof, tmp_path: Path, torch_program: Path) -> None:
    output = tmp_path / "new" / "trace"
    run = iprof("--no-analysis", "--trace-output", output, "--", torch_program, "1", "0")
    assert run.messages == [f"Trace location: {output}"]
    assert output.stat().st_mode & 0o777 == 0o700
    assert (output / "thapi_metadata.yaml").read_text() == "---\n:type: lttng\n"
    metadata = json.loads(next(output.glob("*/iprof_metadata.json")).read_text())
    assert metadata["command"] == [str(torch_program), "1", "0"]
    assert metadata["exit_status"] == 0
    assert metadata["discarded_events"] == 0
    again = iprof("--trace-output", output, "--", "true")
    assert again.status == 2
    assert again.messages == [f"error: --trace-output {output} exists already: name a new one"]


def test_the_analysis_goes_where_it_should(iprof: Iprof, tmp_path: Path, torch_program: Path) -> None:
    output = tmp_path / "tally.json"
    run = iprof("-j", "--analysis-output", output, "--", torch_program, "5", "0")
    assert run.stdout == ""
    assert json.loads(output.read_text())["host"]["6"]["data"]["aten::add.Tensor"]["call"] == 5
    failed = iprof("-r", "--analysis-output", tmp_path / "missing" / "file")
    assert failed.status == 6
    assert len(failed.messages) == 2


def test_a_closed_pipe_ends_quietly(iprof: Iprof, tmp_path: Path, torch_program: Path) -> None:
    iprof("--no-analysis", "--", torch_program, "5", "0")
    shell = f"{IPROF} -r | true"
    done = subprocess.run(
        ["bash", "-c", shell],
        env={**os.environ, "THAPI_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "error" not in done.stderr.lower()
    assert "Traceback" not in done.stderr


def test_the_library_variable(iprof: Iprof, tmp_path: Path) -> None:
    variable = "LTTNG_UST_PYTORCH_LIBRARY_PATH"
    run = iprof("-j", "--", TORCH_PYTHON, PROGRAMS / "abs.py", "3", environment={variable: str(LIBRARIES)})
    assert run.status == 0, run.stderr
    assert run.tally["aten::abs"]["call"] == 3
    wrong = iprof("--", "true", environment={variable: str(tmp_path)})
    assert wrong.status == 2
    assert len(wrong.messages) == 1
    assert "holds no libtorch_cpu.so" in wrong.messages[0]


def torch_of_version(directory: Path, version: str) -> Path:
    """The libraries of the test's torch, in a package that says it is of another version."""
    (directory / "torch").mkdir()
    (directory / "torch/version.py").write_text(f"__version__ = {version!r}\n")
    (directory / "torch/lib").symlink_to(LIBRARIES)
    return directory / "torch/lib"


def test_a_version_that_is_not_validated_warns_once(iprof: Iprof, tmp_path: Path, torch_program: Path) -> None:
    directory = torch_of_version(tmp_path, "2.15.0")
    run = iprof("-j", "--", torch_program, "5", "0", environment={torch_locate.LIBRARY_VARIABLE: str(directory)})
    warnings = [message for message in run.messages if message.startswith("warning: ")]
    assert warnings == ["warning: PyTorch 2.15.0 is untested: the validated range is 1.13 to 2.14"]
    assert run.tally["aten::add.Tensor"]["call"] == 5


def test_a_version_too_old_gets_no_preload(iprof: Iprof, tmp_path: Path) -> None:
    directory = torch_of_version(tmp_path, "1.10.2")
    run = iprof("--", "env", environment={torch_locate.LIBRARY_VARIABLE: str(directory)})
    assert run.status == 0
    assert "LD_PRELOAD" not in run.stdout
    assert len(run.messages) == 1
    assert "PyTorch 1.10.2 is not recorded: its RecordScope has fewer members" in run.messages[0]
    assert run.traces == []


def test_the_user_keeps_variables(iprof: Iprof) -> None:
    user = {"LD_LIBRARY_PATH": "/user/libraries", "LTTNG_UST_REGISTER_TIMEOUT": "1234"}
    run = iprof("--no-analysis", "--", "env", environment=user)
    environment = dict(line.split("=", 1) for line in run.stdout.splitlines() if "=" in line)
    assert environment["LD_LIBRARY_PATH"] == "/user/libraries"
    assert environment["LTTNG_UST_REGISTER_TIMEOUT"] == "1234"
    assert any("LTTNG_UST_REGISTER_TIMEOUT is set to '1234' and stays so" in message for message in run.messages)


def test_no_home(torch_program: Path, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "THAPI_HOME")}
    output = tmp_path / "trace"
    done = subprocess.run(
        [IPROF, "-j", "--trace-output", output, "--", torch_program, "4", "0"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["host"]["6"]["data"]["aten::add.Tensor"]["call"] == 4


@pytest.mark.parametrize("tool", ["lttng", "lttng-sessiond"])
def test_no_lttng(iprof: Iprof, tmp_path: Path, own_machine: list[str], tool: str) -> None:
    with machine(own_machine) as (before, _):
        run = iprof("--", "true", before=before, environment={"PATH": path_without(tool, tmp_path / "path")})
    assert run.status == 3
    remedy = "install LTTng (Debian: apt install lttng-tools liblttng-ust1)"
    assert run.messages == [f"error: {tool} was not found: {remedy}"]
    assert run.traces == []


def test_no_lttng_leaves_no_daemon(iprof: Iprof, tmp_path: Path, own_machine: list[str]) -> None:
    with machine(own_machine) as (before, processes):
        path = path_without("lttng", tmp_path / "path")
        assert iprof("--", "true", before=before, environment={"PATH": path}).status == 3
        assert processes() == set()


def test_no_session_daemon_to_be_started(iprof: Iprof, tmp_path: Path, own_machine: list[str]) -> None:
    path = path_without("lttng-sessiond", tmp_path / "path")
    broken = Path(path, "lttng-sessiond")
    broken.write_text("#!/bin/sh\necho 'Error: no room for me' >&2\nexit 1\n")
    broken.chmod(0o755)
    run = iprof("--", "true", before=own_machine, environment={"PATH": path})
    assert run.status == 4
    assert run.messages == ["error: no LTTng session daemon could be started: no room for me"]
    assert run.traces == []


def test_a_file_that_is_no_program(iprof: Iprof, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    run = iprof("--", file)
    assert run.status == 126
    assert run.messages == [f"error: {file}: cannot be run: Permission denied"]


def test_no_bt2(iprof: Iprof, tmp_path: Path, torch_program: Path) -> None:
    iprof("--no-analysis", "--", torch_program, "5", "0")
    (tmp_path / "bt2.py").write_text("raise ImportError('no bt2 here')\n")
    run = iprof("-r", environment={"PYTHONPATH": str(tmp_path)})
    assert run.status == 3
    assert run.messages[1:] == [
        "error: babeltrace2's Python module cannot be imported (no bt2 here): install python3-bt2 and make the "
        "environment of iprof-py with `/usr/bin/python3 -m venv --system-site-packages`"
    ]


def test_runs_at_the_same_time_have_their_own_calls(tmp_path: Path, torch_program: Path) -> None:
    def run(number: int) -> int:
        done = run_in(tmp_path, "-j", "--", torch_program, str(100 + number), "0")
        calls: int = done.tally["aten::add.Tensor"]["call"]
        return calls

    with ThreadPoolExecutor(8) as executor:
        assert list(executor.map(run, range(8))) == [100 + number for number in range(8)]


def private_directories(before: list[str]) -> list[str]:
    command = [*before, "find", str(private.ROOT_DIRECTORY), "-name", f"{private.PREFIX}*"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_nothing_is_left_behind(iprof: Iprof, torch_program: Path, own_machine: list[str]) -> None:
    with machine(own_machine) as (before, processes):
        assert iprof("-j", "--", torch_program, "5", "0", before=before).tally["aten::add.Tensor"]["call"] == 5
        assert iprof("--no-analysis", "--", "no-such-command", before=before).status == 127
        wait_until(lambda: not processes())  # consumer daemons end a moment after their daemon
        assert private_directories(before) == []


def test_a_killed_run_is_cleaned_up_by_the_next(tmp_path: Path, torch_program: Path, own_machine: list[str]) -> None:
    fifo = make_fifo(tmp_path)
    with machine(own_machine) as (before, _):
        process = start(tmp_path, "--", TORCH_PYTHON, WAITING, fifo, output=subprocess.DEVNULL, before=before)
        assert fifo.read_text() == "ready"
        (program,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.kill()
        process.wait()
        assert len(private_directories(before)) == 1
        run = run_in(tmp_path, "-j", "--", torch_program, "5", "0", before=before)
        os.kill(int(program), signal.SIGKILL)
        assert run.tally["aten::add.Tensor"]["call"] == 5
        assert private_directories(before) == []
    replayed = run_in(tmp_path, "-j", "-r", run.traces[0])
    assert replayed.tally["aten::neg"]["call"] == 1
