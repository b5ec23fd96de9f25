"""Adds 1,000 times each in the parent, a thread, a forked DataLoader worker and a spawned process."""

import multiprocessing
import os
import threading

import torch
from torch.utils.data import DataLoader, Dataset

COUNT = 1000


def add() -> None:
    ones = torch.ones(3)
    for _ in range(COUNT):
        torch.add(ones, ones)


class Adding(Dataset):
    def __len__(self) -> int:
        return 1

    def __getitem__(self, _: int) -> int:
        add()
        return os.getpid()


if __name__ == "__main__":
    add()
    thread = threading.Thread(target=add)
    thread.start()
    thread.join()
    (worker,) = DataLoader(Adding(), num_workers=1, multiprocessing_context="fork")
    process = multiprocessing.get_context("spawn").Process(target=add)
    process.start()
    process.join()
    print(os.getpid(), int(worker), process.pid)
