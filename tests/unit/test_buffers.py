from __future__ import annotations

import pytest

from iprof_py import buffers

MIB = 1 << 20


@pytest.mark.parametrize(
    ("free", "size"),
    [
        (0, None),
        (64 * 1024, None),
        (2 * MIB, None),
        (2 * (2 * MIB + 4 * 16 * 1024), 16 * 1024),
        (6 * MIB, 256 * 1024),
        (8 * MIB, 512 * 1024),
        (1 << 40, 512 * 1024),
    ],
)
def test_sub_buffers_fit_what_is_free(monkeypatch: pytest.MonkeyPatch, free: int, size: int | None) -> None:
    monkeypatch.setattr(buffers, "_free_bytes", lambda: free)
    monkeypatch.setattr(buffers, "_cpus", lambda: 2)
    assert buffers.sub_buffer_bytes() == size
    assert "/dev/shm has" in buffers.shortage()
