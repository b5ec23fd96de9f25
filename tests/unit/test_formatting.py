from __future__ import annotations

import pytest

from iprof_py.analyses import formatting


@pytest.mark.parametrize(
    ("value_ns", "text"),
    [
        (0, "0ns"),
        (169, "169ns"),
        (607.777, "607.78ns"),
        (999, "999ns"),
        (1000, "1.00us"),
        (999_999, "1000.00us"),
        (64_610_000, "64.61ms"),
        (59_990_000_000, "59.99s"),
        (60_000_000_000, "1.00min"),
        (7_200_000_000_000, "2.00h"),
    ],
)
def test_durations(value_ns: float, text: str) -> None:
    assert formatting.duration(value_ns) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (-1, "abcdefghijkl"),
        (12, "abcdefghijkl"),
        (11, "abc[...]jkl"),
        (10, "ab[...]jkl"),
        (6, "[...]l"),
        (5, "[...]"),
        (3, "[.."),
        (0, ""),
    ],
)
def test_names_are_shortened_in_the_middle(size: int, text: str) -> None:
    assert formatting.shorten("abcdefghijkl", size) == text


def test_a_name_stays_on_its_line() -> None:
    assert formatting.printable('a\n"b"[é]\x1b') == 'a\\n"b"[é]\\x1b'


def test_columns_are_right_aligned_and_hidden_cells_count() -> None:
    text = formatting.table(["Name", "A"], [["x", "1"], ["Total", "12345"]], blank=[(1, 1)])
    assert text == " Name |     A | \n    x |     1 | \nTotal |         \n"


def test_markdown_escapes_what_divides_columns() -> None:
    assert formatting.markdown_table(["N", "A"], [["a|b", "1"]]) == "| N | A |\n| :-- | --: |\n| a\\|b | 1 |\n"
