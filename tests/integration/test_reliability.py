"""Programs, ends and machines that are hard on a tracer; docs/reliability.md lists them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipapp
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import IPROF, PROGRAMS, REPOSITORY, TORCH, TORCH_PYTHON, Iprof, Run, calls_of, run_in

BEHAVIOURS = PROGRAMS / "behaviours.py"
ADD = "aten::add.Tensor"
NOBODY = 65534  # has a passwd entry, without which root's daemon refuses to write for a user


def adds(run: Run) -> list[int]:
    """The calls of add, by process."""
    return list(calls_of(run.threads, ADD).values())


@pytest.mark.parametrize(
    ("behaviour", "expected", "status"),
    [
        ("spawn", [100, 100], 0),
        ("forkserver", [100, 100], 0),
        ("fork_beside_threads", [100] * 5, 0),
        ("jit_fork", [100], 0),
        ("at_exit", [100], 0),
        ("daemon_thread_at_exit", [100], 134),  # as without us: torch's threads do not survive the interpreter
        ("hard_exit", [100], 3),
        ("abort", [100], 134),
        ("segfault", [100], 139),
        ("exception", [100], 1),
        ("exec_itself", [200], 0),
        ("three_deep", [100], 0),
    ],
)
def test_behaviour(iprof: Iprof, behaviour: str, expected: list[int], status: int) -> None:
    run = iprof("-j", "-e", "--", TORCH_PYTHON, BEHAVIOURS, behaviour)
    assert run.status == status, run.stderr
    calls = adds(run)
    # A pool's work is in one or two processes, as its workers take it.
    assert calls == expected or (behaviour in ("spawn", "forkserver") and sum(calls) == sum(expected))


def test_backward_on_many_threads(iprof: Iprof) -> None:
    run = iprof("-j", "-e", "--", TORCH_PYTHON, BEHAVIOURS, "backward_on_threads")
    node = "torch::autograd::AccumulateGrad"
    assert [table["data"][node]["call"] for table in run.threads if node in table["data"]] == [20] * 5
    assert json.loads(run.stdout)["unpaired"] == {"entries": 0, "exits": 0}


def test_the_programs_own_profiler(iprof: Iprof) -> None:
    run = iprof("-j", "--", TORCH_PYTHON, BEHAVIOURS, "own_profiler")
    assert run.stdout.splitlines()[0] == "100"
    assert run.tally[ADD]["call"] == 100


def test_a_profiling_timer(iprof: Iprof) -> None:
    run = iprof("-j", "--", TORCH_PYTHON, BEHAVIOURS, "profiling_timer")
    assert run.stdout.splitlines()[0] == "ticks"
    assert run.tally[ADD]["call"] == 5000


def test_a_daemon_that_outlives_its_parent(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    command: list[str | Path] = [IPROF, "-j", "--", TORCH_PYTHON, BEHAVIOURS, "late_fork_without_exec", fifo]
    environment = {**os.environ, "THAPI_HOME": str(tmp_path)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert fifo.read_text() == "done"
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert json.loads(output)["host"]["6"]["data"][ADD]["call"] >= 100


def test_a_program_that_clears_the_preload(iprof: Iprof, torch_program: Path) -> None:
    run = iprof("--", "env", "-u", "LD_PRELOAD", torch_program, "5", "4")
    assert run.status == 4
    assert run.messages == ["no PyTorch operator was recorded: the program loaded no torch, or ran no operator"]


@pytest.mark.parametrize("flag", ["-I", "-E", "-s"])
def test_isolated_interpreters(iprof: Iprof, flag: str) -> None:
    program = "import torch; torch.add(torch.ones(1), 1)"
    assert iprof("-j", "--", TORCH_PYTHON, flag, "-c", program).tally[ADD]["call"] == 1


def test_an_interpreter_in_an_odd_place(tmp_path: Path) -> None:
    place = tmp_path / "spaces and é" / "venv"
    place.parent.mkdir()
    place.symlink_to(TORCH)
    program = "import torch; torch.add(torch.ones(1), 1)"
    assert run_in(tmp_path, "-j", "--", place / "bin/python", "-c", program).tally[ADD]["call"] == 1


def test_a_zipapp(iprof: Iprof, tmp_path: Path) -> None:
    source = tmp_path / "app"
    source.mkdir()
    (source / "__main__.py").write_text("import torch; torch.add(torch.ones(1), 1)")
    zipapp.create_archive(source, tmp_path / "app.pyz")
    assert iprof("-j", "--", TORCH_PYTHON, tmp_path / "app.pyz").tally[ADD]["call"] == 1


@pytest.mark.parametrize("prefix", ["umask 077", "LC_ALL=C; export LC_ALL", "cd /; unset PWD"])
def test_odd_shells(iprof: Iprof, torch_program: Path, tmp_path: Path, prefix: str) -> None:
    script = f'{prefix}; exec "{IPROF}" -j -- "{torch_program}" 50 0'
    done = subprocess.run(
        ["sh", "-c", script],
        env={**os.environ, "THAPI_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["host"]["6"]["data"][ADD]["call"] == 50


def test_few_file_descriptors(iprof: Iprof, torch_program: Path) -> None:
    run = iprof("-j", "--", "sh", "-c", f'ulimit -n 64; exec "{torch_program}" 50 0')
    assert run.tally[ADD]["call"] == 50


def test_eight_threads_lose_nothing(iprof: Iprof) -> None:
    program = (
        "import torch, threading\n"
        "def add():\n"
        "    ones = torch.ones(3)\n"
        "    for _ in range(20_000): torch.add(ones, ones)\n"
        "threads = [threading.Thread(target=add) for _ in range(8)]\n"
        "[thread.start() for thread in threads]; [thread.join() for thread in threads]\n"
    )
    run = iprof("-j", "-e", "--", TORCH_PYTHON, "-c", program)
    assert [table["data"][ADD]["call"] for table in run.threads if ADD in table["data"]] == [20_000] * 8


def daemons(root: Path, name: str) -> list[int]:
    """The session daemon of the machine with this root directory, or its consumer daemons."""
    daemon = (root / "run/lttng/lttng-sessiond.pid").read_text().strip()
    if name == "session":
        return [int(daemon)]
    children = " ".join(path.read_text() for path in Path(f"/proc/{daemon}/task").glob("*/children")).split()
    return [int(pid) for pid in children if Path(f"/proc/{pid}/comm").read_text().strip() == "lttng-consumerd"]


@pytest.mark.parametrize("daemon", ["session", "consumer"])
def test_a_daemon_that_dies(tmp_path: Path, daemon: str, own_machine: list[str]) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    program = (
        "import sys, torch\nones = torch.ones(3)\n"
        "for _ in range(1000): torch.add(ones, ones)\n"
        "open(sys.argv[1], 'w').write('ready'); open(sys.argv[1]).read()\n"
        "for _ in range(300_000): torch.add(ones, ones)\nsys.exit(9)\n"
    )
    command: list[str | Path] = [*own_machine, IPROF, "-j", "--", TORCH_PYTHON, "-c", program, fifo]
    environment = {**os.environ, "THAPI_HOME": str(tmp_path)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert fifo.read_text() == "ready"
        killed = daemons(Path(f"/proc/{process.pid}/root"), daemon)
        assert killed
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        fifo.write_text("go")
        output, errors = process.communicate(timeout=100)
    assert process.returncode == 9
    assert f"LTTng's {daemon} daemon died: what the program does from now on is not recorded" in errors
    assert errors.count("daemon died") == 1
    assert "Traceback" not in errors
    if output:  # what was in the buffers may be lost with the daemon
        assert json.loads(output)["host"]["6"]["data"][ADD]["call"] > 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "small"
    directory.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", directory], check=False).returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield directory
    subprocess.run(["umount", "--lazy", directory], check=True)


def test_a_full_disk(iprof: Iprof, small_disk: Path, torch_program: Path) -> None:
    run = iprof("--trace-output", small_disk / "trace", "--", torch_program, "200000", "8")
    assert run.status == 8
    assert any("is full: what the program does from now on is not recorded" in message for message in run.messages)
    assert ADD in run.stdout


def test_small_shared_memory(iprof: Iprof, tmp_path: Path, torch_program: Path) -> None:
    script = f'mount -t tmpfs -o size=6m none /dev/shm && "{IPROF}" -j -- "{torch_program}" 50 0'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        env={**os.environ, "THAPI_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("no file system can be mounted here")
    assert json.loads(done.stdout)["host"]["6"]["data"][ADD]["call"] == 50


def test_full_shared_memory(tmp_path: Path, torch_program: Path) -> None:
    script = f'mount -t tmpfs -o size=64k none /dev/shm && timeout -s KILL 60 "{IPROF}" -- "{torch_program}" 50 6'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        env={**os.environ, "THAPI_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("no file system can be mounted here")
    assert "warning: /dev/shm has 64 KiB free, and LTTng needs at least" in done.stderr
    assert done.returncode == 6


@pytest.fixture
def as_user(torch_program: Path) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Run commands as a user, by default one without a passwd entry, with a home of his own that holds the program."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    if not all(parent.stat().st_mode & 0o005 == 0o005 for parent in REPOSITORY.resolve().parents):
        pytest.skip("other users cannot read this checkout")
    home = Path(tempfile.mkdtemp(prefix="user-"))
    shutil.copy(torch_program, home / "adder")

    def run(
        *arguments: str | Path, user: int = 54321, groups: str = "--clear-groups", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        os.chown(home, user, user)
        variables = {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", **environment}
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", groups]
        command: list[str | Path] = [*become, IPROF, *map(str, arguments)]
        return subprocess.run(
            command, env=variables, cwd=home, capture_output=True, text=True, check=False, timeout=100
        )

    yield run
    shutil.rmtree(home)


def user_processes() -> set[str]:
    done = subprocess.run(["ps", "-u", "54321", "-o", "stat=,comm="], capture_output=True, text=True, check=False)
    return {line.split()[1] for line in done.stdout.splitlines() if not line.startswith("Z")}


def test_an_ordinary_user(as_user: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = as_user("-j", "--", "./adder", "50", "0")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["host"]["6"]["data"][ADD]["call"] == 50
    deadline = time.monotonic() + 10
    while user_processes():  # the consumer daemon ends by itself, a moment after its session daemon
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert [path for path in Path("/tmp").glob("iprof-py-*") if path.stat().st_uid == 54321] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="starts root's daemon")
def test_a_user_of_the_tracing_group_beside_roots_daemon(
    as_user: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    subprocess.run(["groupadd", "--force", "tracing"], check=True)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    environment = {**os.environ, "THAPI_HOME": str(tmp_path)}
    command: list[str | Path] = [IPROF, "--no-analysis", "--", "sh", "-c", f"echo ready >{fifo}; cat {fifo}"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as roots_run:
        assert fifo.read_text() == "ready\n"
        done = as_user("-j", "--", "./adder", "50", "0", user=NOBODY, groups=f"--groups={NOBODY},tracing")
        fifo.write_text("go")
    assert roots_run.returncode == 0
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["host"]["6"]["data"][ADD]["call"] == 50


def test_a_user_who_cannot_write_there(as_user: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = as_user("--", "./adder", "50", "0", THAPI_HOME="/proc/nowhere")
    assert done.returncode == 6
    assert done.stderr.startswith("iprof-py: error: cannot create the trace directory /proc/nowhere/thapi-traces: ")
    assert done.stderr.count("\n") == 1
    assert as_user("--", "./adder", "50", "0", HOME="").returncode in (0, 6)


def test_a_users_own_daemon_home(as_user: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = as_user("-j", "--", "./adder", "50", "0", LTTNG_HOME="/nonexistent", TMPDIR="/dev/shm")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["host"]["6"]["data"][ADD]["call"] == 50


def test_the_doctor(iprof: Iprof, tmp_path: Path) -> None:
    run = iprof("doctor", TORCH_PYTHON)
    assert run.status == 0, run.stdout
    assert all(line.startswith("ok ") for line in run.stdout.splitlines())
    assert any(line.startswith("ok       torch: 2.") for line in run.stdout.splitlines())
    without = iprof("doctor", sys.executable, environment={"PATH": str(tmp_path)})
    assert without.status == 1
    assert "missing  lttng: not on PATH; Debian has it in lttng-tools" in without.stdout
