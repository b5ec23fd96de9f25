"""Kills itself after 5,000 operators."""

import os
import signal

import torch

ones = torch.ones(3)
for _ in range(5000):
    torch.neg(ones)
os.kill(os.getpid(), signal.SIGKILL)
