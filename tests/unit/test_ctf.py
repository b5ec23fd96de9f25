from __future__ import annotations

import struct
from pathlib import Path

import pytest

from iprof_py import ctf

HEADER_SIZE = 84


def packet(size: int, content: int) -> bytes:
    header = struct.pack("=I16xIQQQQQQQI", 0xC1FC1FC1, 0, 0, 0, 0, content * 8, size * 8, 0, 0, 0)
    return header.ljust(size, b"\0")


@pytest.mark.parametrize(
    ("data", "whole", "packets"),
    [
        (b"", 0, 0),
        (packet(4096, 100), 4096, 1),
        (packet(4096, 100) + packet(8192, 8192), 12288, 2),
        (packet(4096, 100) + packet(4096, 100)[:-1], 4096, 1),
        (packet(4096, 100) + b"\0" * 4096, 4096, 1),
        (packet(4096, 100)[:50], 0, 0),
        (packet(4096, 5000), 0, 0),
        (packet(84, 83), 0, 0),
        (b"random bytes" * 100, 0, 0),
    ],
)
def test_the_end_of_the_last_whole_packet(tmp_path: Path, data: bytes, whole: int, packets: int) -> None:
    stream = tmp_path / "stream"
    stream.write_bytes(data)
    check = ctf.check(stream)
    assert (check.whole_size, check.packets) == (whole, packets)
    assert check.damaged == (whole < len(data))


def test_empty_packets_hold_no_events(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_bytes(b"not a stream")
    (tmp_path / "stream_0").write_bytes(packet(4096, HEADER_SIZE))
    assert not ctf.holds_events(tmp_path)
    (tmp_path / "stream_1").write_bytes(packet(4096, HEADER_SIZE) + packet(4096, HEADER_SIZE + 1))
    assert ctf.holds_events(tmp_path)


def metadata_packet(text: bytes) -> bytes:
    size = 37 + len(text)
    return struct.pack("=I16xIII5x", 0x75D11D57, 0, size * 8, size * 8) + text


@pytest.mark.parametrize(
    ("data", "whole"),
    [
        (b"/* CTF 1.8 */ typealias", 23),
        (metadata_packet(b"abc"), 40),
        (metadata_packet(b"abc") + metadata_packet(b"def"), 80),
        (metadata_packet(b"abc") + metadata_packet(b"def")[:-1], 40),
        (metadata_packet(b"abc")[:39], 0),
        (metadata_packet(b"abc") + b"\0" * 100, 40),
    ],
)
def test_the_end_of_the_description(tmp_path: Path, data: bytes, whole: int) -> None:
    (tmp_path / "metadata").write_bytes(data)
    assert ctf.check_metadata(tmp_path).whole_size == whole
