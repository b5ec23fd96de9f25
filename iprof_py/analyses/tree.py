"""The calling-context tree: what called what, with inclusive and self time; as text and as flame graphs.

record_function scopes are nodes like operators. A node's self time is its time less that of the nodes right below it:
the self times of a tree add up to the times of its roots.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TextIO

from iprof_py import VERSION
from iprof_py.analyses import columns, formatting, graph
from iprof_py.analyses.calls import Calls, Origin, operator_name
from iprof_py.messages import notice, warn
from iprof_py.settings import AnalysisSettings
from iprof_py.traces import Trace


@dataclass
class Node:
    """One path of operators: calls and inclusive time in nanoseconds, and the nodes below by name."""

    name: str
    calls: int = 0
    time_ns: int = 0
    children: dict[str, Node] = field(default_factory=dict)

    @property
    def below_ns(self) -> int:
        """The time of the nodes right below."""
        return sum(child.inclusive_ns for child in self.children.values())

    @property
    def inclusive_ns(self) -> int:
        """Its time; that of what is below where the node itself has none, for its end was lost."""
        return self.time_ns if self.calls else self.below_ns

    @property
    def self_ns(self) -> int:
        """Its time less that of the nodes right below; a scope that ended elsewhere may leave less than nothing: 0."""
        return max(0, self.inclusive_ns - self.below_ns)

    @property
    def ordered_children(self) -> list[Node]:
        """The nodes right below, most time first."""
        return sorted(self.children.values(), key=lambda node: (-node.inclusive_ns, node.name))


@dataclass(frozen=True)
class ThreadTree:
    """The tree of one thread; the root is no call."""

    origin: Origin
    root: Node


def run_text(trace: Trace, settings: AnalysisSettings, output: TextIO) -> int:
    """Write the tree as text: one for the whole trace, or for each thread."""
    trees = read(trace)
    if settings.extended:
        for tree in trees:
            origin = tree.origin
            heading = f"Hostname: {origin.host} | Process: {origin.pid} | Thread: {origin.tid} | "
            output.write(_to_text(heading, tree.root, settings))
    elif trees:
        output.write(_to_text(_count_heading(trees), _merged(trees), settings))
    return 0


def run_flamegraph(trace: Trace, settings: AnalysisSettings, output: TextIO) -> int:
    """Write collapsed stacks, or a speedscope file when the output's name ends like one."""
    trees = read(trace)
    speedscope = str(settings.output or "").endswith(".speedscope.json")
    output.writelines(_speedscope(trees) if speedscope else _folded(trees))
    return 0


def read(trace: Trace) -> list[ThreadTree]:
    """Compute the trees of a trace's threads; raises IprofError as `graph.run` does."""
    document = graph.run("tree", trace, {})
    if not document["trees"]:
        notice("the trace holds no PyTorch operator")
    if document["unpaired_entries"] or document["unpaired_exits"]:
        warn(
            f"{document['unpaired_entries']} calls without an end and {document['unpaired_exits']} without a beginning"
        )
    trees = [_read_tree(each) for each in document["trees"]]
    return sorted(trees, key=lambda tree: tree.origin.sort_key)


def _read_tree(document: Mapping[str, Any]) -> ThreadTree:
    """A tree from its nodes, of which each comes after the one it is below; number 0 is the root."""
    nodes = [Node("")]
    for each in document["nodes"]:
        node = Node(operator_name(each), each["calls"], each["time_ns"])
        node = _add(nodes[each["parent"]], node)
        nodes.append(node)
    return ThreadTree(Origin(document["host"], document["pid"], document["tid"]), nodes[0])


def _add(parent: Node, node: Node) -> Node:
    """Put a node below another, or add its numbers to the one of its name there; returns the one that stays."""
    known = parent.children.setdefault(node.name, node)
    if known is not node:
        known.calls += node.calls
        known.time_ns += node.time_ns
    return known


def _merged(trees: list[ThreadTree]) -> Node:
    root = Node("")
    pending = [(root, tree.root) for tree in trees]
    while pending:
        target, source = pending.pop()
        for child in source.children.values():
            kept = _add(target, Node(child.name, child.calls, child.time_ns))
            pending.append((kept, child))
    return root


def _walk(root: Node) -> Iterator[tuple[int, Node]]:
    """The nodes below the root with their depth, parents first, most time first; deep trees need no recursion."""
    pending = [(0, node) for node in reversed(root.ordered_children)]
    while pending:
        depth, node = pending.pop()
        yield depth, node
        pending += [(depth + 1, child) for child in reversed(node.ordered_children)]


def _count_heading(trees: list[ThreadTree]) -> str:
    hosts = {tree.origin.host for tree in trees}
    processes = {(tree.origin.host, tree.origin.pid) for tree in trees}
    return f"{len(hosts)} Hostnames | {len(processes)} Processes | {len(trees)} Threads | "


def _to_text(heading: str, root: Node, settings: AnalysisSettings) -> str:
    whole = Calls(time_ns=root.below_ns, self_ns=root.below_ns)
    shown = [columns.COLUMNS[name] for name in ("time", "time%", "self", "self%", "calls")]
    lines = [[column.heading for column in shown]]
    names = ["Name"]
    for depth, node in _walk(root):
        if settings.depth is not None and depth >= settings.depth:
            continue
        calls = Calls(calls=node.calls, time_ns=node.inclusive_ns, self_ns=node.self_ns)
        lines.append([column.show(column.value(calls, whole)) for column in shown])
        names.append("  " * depth + formatting.shorten(formatting.printable(node.name), settings.max_name_size))
    table = formatting.table(lines[0], lines[1:]).splitlines()
    rows = "".join(f"{line}{name}\n" for line, name in zip(table, names, strict=True))
    return f"{heading}\n\n{rows}\n"


def _folded(trees: list[ThreadTree]) -> Iterator[str]:
    """Lines of collapsed stacks: ``outer;inner self_ns``. Semicolons end frames; commas stand in."""
    for path, node in _paths(_merged(trees)):
        if node.self_ns:
            frames = (formatting.printable(name).replace(";", ",") for name in path)
            yield f"{';'.join(frames)} {node.self_ns}\n"


def _paths(root: Node) -> Iterator[tuple[list[str], Node]]:
    """The nodes below the root, each with the names from the root to it."""
    path: list[str] = []
    for depth, node in _walk(root):
        del path[depth:]
        path.append(node.name)
        yield path, node


def _speedscope(trees: list[ThreadTree]) -> Iterator[str]:
    """A speedscope file with a profile for each thread.

    Layout: https://www.speedscope.app/file-format-schema.json, profiles of type "sampled".
    """
    frames: dict[str, int] = {}
    profiles = [_speedscope_profile(tree, frames) for tree in trees]
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": f"iprof-py {VERSION}",
        "name": "iprof-py",
        "shared": {"frames": [{"name": formatting.printable(name)} for name in frames]},
        "profiles": profiles,
    }
    yield json.dumps(document) + "\n"


def _speedscope_profile(tree: ThreadTree, frames: dict[str, int]) -> dict[str, Any]:
    samples, weights = [], []
    for path, node in _paths(tree.root):
        numbers = [frames.setdefault(name, len(frames)) for name in path]
        if node.self_ns:
            samples.append(numbers)
            weights.append(node.self_ns)
    return {
        "type": "sampled",
        "name": f"{tree.origin.host}, process {tree.origin.pid}, thread {tree.origin.tid}",
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }
