"""Calls of operators and how they add up: what every table of an analysis is made of."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True)
class Origin:
    """The thread that calls came from."""

    host: str
    pid: int
    tid: int

    @property
    def sort_key(self) -> tuple[str, int, int]:
        """Orders origins by host, process and thread."""
        return self.host, self.pid, self.tid


@dataclass(frozen=True, order=True)
class Bucket:
    """Durations from ``low_ns`` to ``high_ns``, both included, that a histogram does not tell apart."""

    low_ns: int
    high_ns: int

    @property
    def middle_ns(self) -> int:
        """The duration that stands for all of them, at most 1.6 % off."""
        return (self.low_ns + self.high_ns) // 2


@dataclass(frozen=True)
class Calls:
    """Calls of one operator, or of several; times in nanoseconds.

    Calls without an entry are errors: they count, and have no time. The histogram is empty unless it was asked for.
    """

    calls: int = 0
    errors: int = 0
    time_ns: int = 0
    self_ns: int = 0
    min_ns: int = 0
    max_ns: int = 0
    squares_ns2: int = 0  # the sum of the squared durations
    histogram: Mapping[Bucket, int] = field(default_factory=dict)

    @property
    def timed(self) -> int:
        """The number of calls that have a time."""
        return self.calls - self.errors

    @property
    def average_ns(self) -> float:
        """The mean duration of the calls that have one."""
        return self.time_ns / self.timed if self.timed else 0.0

    @property
    def deviation_ns(self) -> float:
        """The standard deviation of the durations."""
        if not self.timed:
            return 0.0
        return math.sqrt(self.timed * self.squares_ns2 - self.time_ns**2) / self.timed

    def percentile_ns(self, percent: float) -> int:
        """The duration that ``percent`` of the calls do not exceed, as exactly as the histogram tells; 0 of none."""
        wanted = max(1, math.ceil(percent / 100 * sum(self.histogram.values())))
        seen = 0
        for bucket in sorted(self.histogram):
            seen += self.histogram[bucket]
            if seen >= wanted:
                return min(max(bucket.middle_ns, self.min_ns), self.max_ns)
        return 0

    def __add__(self, other: Calls) -> Calls:
        timed = [calls for calls in (self, other) if calls.timed]
        return Calls(
            calls=self.calls + other.calls,
            errors=self.errors + other.errors,
            time_ns=self.time_ns + other.time_ns,
            self_ns=self.self_ns + other.self_ns,
            min_ns=min((calls.min_ns for calls in timed), default=0),
            max_ns=max((calls.max_ns for calls in timed), default=0),
            squares_ns2=self.squares_ns2 + other.squares_ns2,
            histogram=Counter(self.histogram) + Counter(other.histogram),
        )


NO_CALLS: Final = Calls()


def total(calls: Iterable[Calls]) -> Calls:
    """All calls together."""
    result = NO_CALLS
    for each in calls:
        result += each
    return result


def read_calls(document: Mapping[str, Any]) -> Calls:
    """The calls in a row of a native document."""
    return Calls(
        calls=document["calls"],
        errors=document["errors"],
        time_ns=document["time_ns"],
        self_ns=document["self_ns"],
        min_ns=document["min_ns"],
        max_ns=document["max_ns"],
        squares_ns2=int(document["squares_ns2"]),
        histogram={Bucket(low, high): count for low, high, count in document.get("histogram", ())},
    )


def operator_name(document: Mapping[str, Any]) -> str:
    """The name that a row of a native document is shown under, its overload joined to it."""
    name, overload = document["name"], document["overload"]
    return f"{name}.{overload}" if overload else name
