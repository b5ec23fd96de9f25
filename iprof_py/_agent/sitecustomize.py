"""Runs at the start of a traced Python program, for ``iprof-py --python-log``: its log records become LTTng events.

Its directory stands before the program's own PYTHONPATH. It starts the lttngust agent, which talks to the session
daemon, but keeps the agent's handler out of the root logger: with a handler there, ``logging.basicConfig`` would do
nothing, and warnings of a program that never configured its logging would no longer reach stderr. The program's own
sitecustomize, if it has one, runs afterwards.

It must work with every Python that runs torch, and never fail the program.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.machinery
import importlib.util
import logging
import os
import sys


def _leave_path() -> None:
    """Take this file's directory out of the program's sight."""
    own = __file__.rpartition("/")[0]
    sys.path[:] = [entry for entry in sys.path if entry != own]


def _text(value: object) -> bytes:
    return str(value).replace("\0", "\ufffd").encode("utf-8", "replace")


def _record(handler: logging.Handler, record: logging.LogRecord) -> None:
    handler.agent_lib.py_tracepoint(  # type: ignore[attr-defined]
        _text(handler.format(record)),
        _text(record.getMessage()),
        _text(record.name),
        _text(record.funcName),
        record.lineno,
        record.levelno,
        record.thread,
        _text(record.threadName),
    )


def _start_agent(level: int) -> None:
    add_handler = logging.Logger.addHandler
    remove_handler = logging.Logger.removeHandler
    pass_filters = logging.Logger.filter
    handlers: list[logging.Handler] = []

    def is_ours(handler: logging.Handler) -> bool:
        return type(handler).__module__ == "lttngust.loghandler"

    def intercept_add(self: logging.Logger, handler: logging.Handler) -> None:
        if is_ours(handler):
            handlers.append(handler)
        else:
            add_handler(self, handler)

    def intercept_remove(self: logging.Logger, handler: logging.Handler) -> None:
        if is_ours(handler):
            handlers[:] = [other for other in handlers if other is not handler]
        else:
            remove_handler(self, handler)

    # The last step before the handlers, and over when they run: tracebacks that they print do not show it.
    def filter_and_record(self: logging.Logger, record: logging.LogRecord) -> bool | logging.LogRecord:
        passed = pass_filters(self, record)
        if passed and handlers and record.levelno >= level:
            # A record that cannot be recorded is no reason to disturb the program.
            with contextlib.suppress(Exception):
                _record(handlers[0], passed if isinstance(passed, logging.LogRecord) else record)
        return passed

    logging.Logger.addHandler = intercept_add  # type: ignore[method-assign, assignment]
    logging.Logger.removeHandler = intercept_remove  # type: ignore[method-assign, assignment]
    logging.Logger.filter = filter_and_record  # type: ignore[method-assign, assignment]
    root_level = logging.root.level
    importlib.import_module("lttngust")  # starts the agent

    logging.root.setLevel(root_level)


def _announce() -> None:
    """Make the process known to the trace before its first record; the hook does it before the first operator."""
    announce = getattr(ctypes.CDLL(None), "iprof_announce", None)
    if announce is not None:
        announce()


def _run_own_sitecustomize() -> None:
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _start_agent(int(os.environ.get("IPROF_PYTHON_LOG", "0")))
    _announce()
except Exception as error:
    if os.environ.get("IPROF_HOOK_DEBUG") == "1":
        sys.stderr.write(f"iprof-py: the program's log is not recorded: {error!r}\n")
_leave_path()
_run_own_sitecustomize()
