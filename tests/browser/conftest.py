"""A headless Chromium, and speedscope served to it."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

REPOSITORY = Path(__file__).parents[2]
VIEWER = REPOSITORY / "build/browser/node_modules/speedscope/dist/release"
IPROF = Path(sys.executable).parent / "iprof-py"


class _QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the trace of the example's training, and the files made of it."""
    home = tmp_path_factory.mktemp("home")
    environment = {**os.environ, "THAPI_HOME": str(home)}
    python = REPOSITORY / ".venv-torch/bin/python"
    run = [IPROF, "--no-analysis", "--", python, REPOSITORY / "examples/train.py"]
    subprocess.run(run, env=environment, check=True, capture_output=True)
    for arguments in (["--analysis", "flamegraph", home / "tree.speedscope.json"], ["-l", home / "timeline.json"]):
        subprocess.run([IPROF, *arguments], env=environment, check=True, capture_output=True)
    return home


@pytest.fixture(scope="session")
def site(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of speedscope, with the recorded files beside it."""
    directory = tmp_path_factory.mktemp("site") / "site"
    shutil.copytree(VIEWER, directory)
    for file in recorded.glob("*.json"):
        shutil.copy(file, directory)
    handler = functools.partial(_QuietHandler, directory=directory)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        "--window-size=1400,900",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):
        options.add_argument(argument)
    with webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver"))) as driver:
        yield driver
