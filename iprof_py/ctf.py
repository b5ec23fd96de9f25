"""The packets of the CTF files that LTTng-UST writes.

A stream's packet begins with a header (magic u32, uuid 16 bytes, stream id u32, stream instance id u64) and a context
(begin and end timestamps, content size, packet size, sequence number, discarded events: u64 each; cpu id u32), as the
trace's own metadata declares it; sizes are in bits. The metadata file has packets of its own (CTF 1.8, 7.1: magic u32,
uuid 16 bytes, checksum u32, content size u32, packet size u32, five bytes of schemes and version).

babeltrace2 reads no stream whose last packet is cut, which is what a killed session daemon or a full disk leaves,
and 2.0.4 never comes back from a metadata file that is.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

_MAGIC: Final = 0xC1FC1FC1
_HEADER: Final = struct.Struct("=I16xIQQQQQQQI")
_METADATA_MAGIC: Final = 0x75D11D57
_METADATA_HEADER: Final = struct.Struct("=I16xIII5x")
_METADATA_FILE: Final = "metadata"
_BITS: Final = 8


@dataclass(frozen=True)
class Packet:
    """One packet of a stream file; sizes in bytes."""

    offset: int
    content_size: int
    size: int

    @property
    def holds_events(self) -> bool:
        """Whether anything follows the header."""
        return self.content_size > _HEADER.size


@dataclass(frozen=True)
class StreamCheck:
    """How much of a stream file consists of whole packets; sizes in bytes."""

    path: Path
    size: int
    whole_size: int
    packets: int

    @property
    def damaged(self) -> bool:
        """Whether something follows the last whole packet."""
        return self.whole_size < self.size


def stream_files(directory: Path) -> list[Path]:
    """The stream files of a CTF trace, in order of their names."""
    return sorted(
        path
        for path in directory.iterdir()
        if path.name != _METADATA_FILE and not path.name.startswith(".") and path.is_file()
    )


def check(path: Path) -> StreamCheck:
    """Find the end of the last whole packet of a stream file."""
    size = path.stat().st_size
    whole = packets = 0
    for packet in _packets(path, size):
        whole = packet.offset + packet.size
        packets += 1
    return StreamCheck(path, size, whole, packets)


def check_metadata(directory: Path) -> StreamCheck:
    """Find the end of the last whole packet of a CTF trace's description; one without packets is whole."""
    path = directory / _METADATA_FILE
    data = path.read_bytes()
    if data[:4] != _METADATA_MAGIC.to_bytes(4, sys.byteorder):
        return StreamCheck(path, len(data), len(data), 0)
    whole = 0
    while whole + _METADATA_HEADER.size <= len(data):
        magic, _, content_bits, packet_bits = _METADATA_HEADER.unpack_from(data, whole)
        size = packet_bits // _BITS
        sound = magic == _METADATA_MAGIC and _METADATA_HEADER.size * _BITS <= content_bits <= packet_bits
        if not sound or whole + size > len(data):
            break
        whole += size
    return StreamCheck(path, len(data), whole, 0)


def holds_events(directory: Path) -> bool:
    """Whether any stream of a CTF trace has an event."""
    return any(
        packet.holds_events for path in stream_files(directory) for packet in _packets(path, path.stat().st_size)
    )


def _packets(path: Path, file_size: int) -> Iterator[Packet]:
    """The whole packets at the beginning of a file."""
    with path.open("rb") as file:
        offset = 0
        while offset < file_size:
            packet = _read_packet(file, offset)
            if packet is None or offset + packet.size > file_size:
                return
            yield packet
            offset += packet.size


def _read_packet(file: BinaryIO, offset: int) -> Packet | None:
    file.seek(offset)
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    magic, _, _, _, _, content_bits, packet_bits, *_ = _HEADER.unpack(header)
    sound = magic == _MAGIC and packet_bits % _BITS == 0 and _HEADER.size * _BITS <= content_bits <= packet_bits
    return Packet(offset, content_bits // _BITS, packet_bits // _BITS) if sound else None
