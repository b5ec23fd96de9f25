"""Three seeded training steps, under torch.profiler when files are given for the calls by name and the Chrome trace."""

import collections
import contextlib
import json
import sys
from pathlib import Path

import torch
from torch import nn


def train() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        loss = nn.functional.cross_entropy(model(torch.randn(32, 8)), torch.randint(0, 4, (32,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


output = sys.argv[1] if len(sys.argv) > 1 else None
profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) if output else None
with profiler or contextlib.nullcontext():
    train()
if profiler and output:
    calls = collections.Counter(event.name for event in profiler.events())
    Path(output).write_text(json.dumps(calls))
    if len(sys.argv) > 2:
        profiler.export_chrome_trace(sys.argv[2])
