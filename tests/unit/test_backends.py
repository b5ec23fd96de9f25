from __future__ import annotations

import pytest

from iprof_py import backends
from iprof_py.errors import ExitStatus, IprofError


def test_levels() -> None:
    assert backends.parse("pytorch")[0].level == 6
    assert backends.parse("pytorch:3")[0].level == 3
    assert backends.PYTORCH.event_rule == "lttng_ust_pytorch:*"


@pytest.mark.parametrize("text", ["nosuch", "pytorch:", "pytorch:x", "pytorch:-1", "", "pytorch,", "pytorch:²"])
def test_bad_values(text: str) -> None:
    with pytest.raises(IprofError) as error:
        backends.parse(text)
    assert error.value.status is ExitStatus.USAGE
