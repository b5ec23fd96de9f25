"""Runs one workload and prints, as JSON, how many seconds its measured part took.

usage: run.py WORKLOAD COUNT [profiler]
"""

from __future__ import annotations

import contextlib
import json
import resource
import sys
import threading
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)


def add(count: int) -> Callable[[], None]:
    left, right = torch.ones(3), torch.ones(3)

    def run() -> None:
        for _ in range(count):
            torch.add(left, right)

    return run


def two_threads(count: int) -> Callable[[], None]:
    def run() -> None:
        threads = [threading.Thread(target=add(count // 2)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return run


def _steps(model: nn.Module, data: torch.Tensor, count: int) -> Callable[[], None]:
    optimizer = torch.optim.AdamW(model.parameters())

    def run() -> None:
        for _ in range(count):
            optimizer.zero_grad()
            model(data).square().mean().backward()
            optimizer.step()

    return run


def mlp(count: int) -> Callable[[], None]:
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    return _steps(model, torch.randn(64, 32), count)


def transformer(count: int) -> Callable[[], None]:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return _steps(nn.TransformerEncoder(layer, 2), torch.randn(4, 16, 32), count)


def loader(count: int) -> Callable[[], None]:
    data = TensorDataset(torch.randn(count * 16, 8))

    def run() -> None:
        for (batch,) in DataLoader(data, batch_size=16, num_workers=2):
            batch.sum()

    return run


WORKLOADS = {"add": add, "two_threads": two_threads, "mlp": mlp, "transformer": transformer, "loader": loader}


def main() -> None:
    name, count = sys.argv[1], int(sys.argv[2])
    WORKLOADS[name](max(2, count // 20))()  # warms up
    run = WORKLOADS[name](count)
    activities = [torch.profiler.ProfilerActivity.CPU]
    profiler = torch.profiler.profile(activities=activities) if "profiler" in sys.argv[3:] else contextlib.nullcontext()
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with profiler:
        start = time.perf_counter()
        run()
        taken_s = time.perf_counter() - start
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb) / 1024
    print(json.dumps({"seconds": taken_s, "grown_mb": grown_mb}))


main()
