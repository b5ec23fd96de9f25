"""How durations, shares, names and tables look in text; the formats are those of THAPI's tally."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_UNITS_NS: Final = (("h", 3.6e12), ("min", 6e10), ("s", 1e9), ("ms", 1e6), ("us", 1e3))
_MARK: Final = "[...]"


def duration(value_ns: int | float) -> str:
    """A duration in the largest unit that it reaches, such as ``64.61ms``; whole nanoseconds without decimals."""
    for unit, size_ns in _UNITS_NS:
        if value_ns >= size_ns:
            return f"{value_ns / size_ns:.2f}{unit}"
    return f"{value_ns}ns" if isinstance(value_ns, int) else f"{value_ns:.2f}ns"


def shorten(name: str, size: int) -> str:
    """A name of at most ``size`` characters, its middle replaced by a mark; any length when ``size`` is negative."""
    if size < 0 or len(name) <= size:
        return name
    if size <= len(_MARK):
        return _MARK[:size]
    kept = size - len(_MARK)
    return name[: kept // 2] + _MARK + name[len(name) - (kept - kept // 2) :]


def printable(name: str) -> str:
    """A name on one line: control characters and the like are shown as escapes."""
    return name if name.isprintable() else "".join(map(_escape, name))


def _escape(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], blank: Sequence[tuple[int, int]] = ()) -> str:
    """Right-aligned columns, each followed by `` | ``.

    ``blank`` names cells (row, column) that count for the width of their column but are not shown.
    """
    cells = [header, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    hidden = set(blank)
    lines = (
        "".join(
            " " * (width + len(" | ")) if (number - 1, column) in hidden else f"{row[column]:>{width}} | "
            for column, width in enumerate(widths)
        )
        for number, row in enumerate(cells)
    )
    return "\n".join(lines) + "\n"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, its first column to the left and the others to the right."""
    lines = [header, [":--", *("--:" for _ in header[1:])], *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
