"""Runs a native analysis over a trace: a babeltrace2 graph of CTF sources, a muxer and one of our sinks.

Every event is handled by native code; Python builds the graph and reads the document that the sink writes at the end.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

from iprof_py import ctf, native
from iprof_py.analyses.progress import Progress, progress
from iprof_py.errors import ExitStatus, IprofError, reason
from iprof_py.messages import warn
from iprof_py.traces import Trace


def run(sink: str, trace: Trace, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The document that the sink component class ``sink``, given its own parameters, makes of a trace.

    What is damaged or missing is said on stderr, and the readable part analysed. Raises IprofError, SETUP when
    babeltrace2 cannot be used, TRACE when nothing can be read.
    """
    bt2 = _import_bt2()
    _swallowed_error()  # of the graph before, which was taken down since
    checks = {directory: _check(directory) for directory in trace.ctf_directories}
    with _readable(checks) as directories, _memory_file() as document, _progress_of(checks) as bar:
        common = {
            "document-fd": document,
            "progress-fd": bar.descriptor if bar else -1,
            "run-id": trace.run_filter,
        }
        with _trace_errors(bt2, trace.path):
            graph = _build(bt2, sink, directories, {**parameters, **common})
        failure = _run(bt2, graph, bar)
        text = _contents(document)
    if not text:
        raise IprofError(f"the trace {trace.path} cannot be read: {failure or 'no reason given'}", ExitStatus.TRACE)
    if failure:
        warn(f"the trace is damaged, what follows is missing: {failure}")
    result: dict[str, Any] = json.loads(text)
    _report_losses(result)
    return result


def run_into(sink: str, trace: Trace, parameters: Mapping[str, Any], output: TextIO) -> dict[str, Any]:
    """Run a sink that writes its result into the file behind ``output`` itself; the document that it makes.

    Raises OSError when the sink could not write.
    """
    output.flush()
    document = run(sink, trace, {**parameters, "output-fd": output.fileno()})
    error: int = document["output_error"]
    if error:
        raise OSError(error, os.strerror(error))
    return document


def _import_bt2() -> ModuleType:
    try:
        import bt2
    except ImportError as error:
        raise IprofError(
            f"babeltrace2's Python module cannot be imported ({error}): install python3-bt2 and make the environment "
            f"of iprof-py with `/usr/bin/python3 -m venv --system-site-packages`",
            ExitStatus.SETUP,
        ) from None
    module: ModuleType = bt2
    return module


def _build(bt2: ModuleType, sink: str, directories: Sequence[Path], parameters: dict[str, Any]) -> Any:
    plugin = native.find(native.PLUGIN_FILE)
    plugins = bt2.find_plugins_in_path(str(plugin), fail_on_load_error=True)
    sink_class = plugins[0].sink_component_classes[sink]
    source_class = bt2.find_plugin("ctf").source_component_classes["fs"]
    muxer_class = bt2.find_plugin("utils").filter_component_classes["muxer"]
    graph = bt2.Graph()
    muxer = graph.add_component(muxer_class, "muxer")
    sources = [
        graph.add_component(source_class, f"source-{number}", {"inputs": [str(directory)]})
        for number, directory in enumerate(directories)
    ]
    for source in sources:
        for port in source.output_ports.values():
            graph.connect_ports(port, _free_port(muxer))
    end = graph.add_component(sink_class, "sink", parameters)
    graph.connect_ports(muxer.output_ports["out"], end.input_ports["in"])
    return graph


def _free_port(muxer: Any) -> Any:
    return next(port for port in muxer.input_ports.values() if not port.is_connected)


@contextmanager
def _trace_errors(bt2: ModuleType, path: Path) -> Iterator[None]:
    try:
        yield
    except bt2._Error as error:
        raise IprofError(f"the trace {path} cannot be read: {_cause(error)}", ExitStatus.TRACE) from None


def _run(bt2: ModuleType, graph: Any, bar: Progress | None) -> str | None:
    """Run a graph to its end; what failed, or None. Returns to Python between batches, so that Ctrl-C works."""
    try:
        while True:
            graph.run_once()
            if bar:
                bar.update()
    except bt2.Stop:
        return _swallowed_error()
    except bt2._Error as error:
        return _cause(error)


def _swallowed_error() -> str | None:
    """What babeltrace could not read without saying so, or None.

    On some damaged streams its source ends as if nothing were wrong but leaves the thread's error set, and the next
    call into the library would abort the process.
    """
    from bt2 import native_bt

    error = native_bt.current_thread_take_error()
    if error is None:
        return None
    cause = native_bt.error_borrow_cause_by_index(error, 0)
    message = " ".join(str(native_bt.error_cause_get_message(cause)).split())
    native_bt.error_release(error)
    return message


def _cause(error: Any) -> str:
    """The innermost cause of a babeltrace error, on one line."""
    return " ".join(error[0].message.split())


@contextmanager
def _memory_file() -> Iterator[int]:
    descriptor = os.memfd_create("iprof-document")
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _contents(descriptor: int) -> bytes:
    size = os.lseek(descriptor, 0, os.SEEK_END)
    return os.pread(descriptor, size, 0)


_Checks = Mapping[Path, Sequence[ctf.StreamCheck]]


def _check(directory: Path) -> list[ctf.StreamCheck]:
    try:
        return [ctf.check_metadata(directory), *(ctf.check(path) for path in ctf.stream_files(directory))]
    except OSError as error:
        raise IprofError(f"the trace {directory} cannot be read: {reason(error)}", ExitStatus.TRACE) from None


def _progress_of(checks: _Checks) -> AbstractContextManager[Progress | None]:
    streams = [check for each in checks.values() for check in each]
    return progress(sum(check.packets for check in streams), sum(check.whole_size for check in streams))


@contextmanager
def _readable(checks: _Checks) -> Iterator[Sequence[Path]]:
    """The CTF directories of a trace; a damaged one is replaced by a temporary copy without what is damaged."""
    with tempfile.TemporaryDirectory(prefix="iprof-py-") as copies:
        yield [
            _undamaged(directory, streams, Path(copies, str(number)))
            for number, (directory, streams) in enumerate(checks.items())
        ]


def _undamaged(directory: Path, streams: Sequence[ctf.StreamCheck], copy: Path) -> Path:
    return _repaired(streams, copy) if any(check.damaged for check in streams) else directory


def _repaired(streams: Sequence[ctf.StreamCheck], copy: Path) -> Path:
    copy.mkdir()
    for check in streams:
        if not check.damaged:
            (copy / check.path.name).symlink_to(check.path.absolute())
        else:
            warn(
                f"{check.path} is damaged: the last {check.size - check.whole_size} of its {check.size} bytes are left "
                f"out, with the events in them"
            )
            if check.whole_size:
                _copy_beginning(check.path, copy / check.path.name, check.whole_size)
    return copy


def _copy_beginning(source: Path, target: Path, size: int) -> None:
    with source.open("rb") as reader, target.open("wb") as writer:
        shutil.copyfileobj(reader, writer)
        writer.truncate(size)


def _report_losses(document: dict[str, Any]) -> None:
    events, packets = document["discarded_events"], document["discarded_packets"]
    if events or packets or document["discarded_uncounted"]:
        more = " and more that was not counted" if document["discarded_uncounted"] else ""
        warn(f"{events} events and {packets} packets{more} were lost while recording: the analysis is incomplete")
    if any(process["libtorch"] and not process["has_overloads"] for process in document["processes"]):
        warn("this PyTorch is older than 2.7 and gives no overload names: operators are listed without them")
