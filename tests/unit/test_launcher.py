from __future__ import annotations

import logging
from pathlib import Path

import pytest

from iprof_py.launcher import hook_variables, merge_environment


def test_the_hook_comes_before_what_the_user_preloads() -> None:
    variables = hook_variables([Path("/hook.so")], "id", None, {})
    merged = merge_environment({"LD_PRELOAD": "user.so"}, variables)
    assert merged["LD_PRELOAD"] == "/hook.so:liblttng-ust-fork.so.1:user.so"
    assert "LD_LIBRARY_PATH" not in merged


def test_an_empty_path_gets_no_trailing_colon() -> None:
    assert merge_environment({"LD_LIBRARY_PATH": ""}, {"LD_LIBRARY_PATH": "/lib"})["LD_LIBRARY_PATH"] == "/lib"


def test_the_library_directory_comes_first() -> None:
    variables = hook_variables([], "id", Path("/torch/lib"), {})
    assert merge_environment({"LD_LIBRARY_PATH": "/a"}, variables)["LD_LIBRARY_PATH"] == "/torch/lib:/a"


def test_the_session_is_this_runs(caplog: pytest.LogCaptureFixture) -> None:
    variables = hook_variables([], "new", None, {"LTTNG_HOME": "/private"})
    with caplog.at_level(logging.WARNING, "iprof_py"):
        merged = merge_environment({"LTTNG_HOME": "/user", "IPROF_RUN_ID": "old"}, variables)
    assert merged["LTTNG_HOME"] == "/private"
    assert merged["IPROF_RUN_ID"] == "new"


def test_the_users_own_settings_stay() -> None:
    merged = merge_environment({"LTTNG_UST_ALLOW_BLOCKING": "0", "X": "y"}, hook_variables([], "id", None, {}))
    assert merged["LTTNG_UST_ALLOW_BLOCKING"] == "0"
    assert merged["X"] == "y"
