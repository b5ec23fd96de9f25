"""Calls torch.abs N times, and sums and goes backward once."""

import sys

import torch

ones = torch.ones(3)
for _ in range(int(sys.argv[1])):
    torch.abs(ones)
leaf = torch.ones(3, requires_grad=True)
leaf.sum().backward()
with torch.profiler.record_function("outer"), torch.profiler.record_function("inner"):
    torch.ones(2)
