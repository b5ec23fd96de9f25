"""Train a small network on data that it makes: two interleaved spirals, told apart by a multilayer perceptron."""

import math

import torch
from torch import nn
from torch.profiler import record_function

STEPS = 50
BATCH = 256


def spirals(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points on two spirals, shape (count, 2), and which spiral each is on, shape (count,)."""
    labels = torch.randint(0, 2, (count,))
    angle = torch.rand(count) * 3 * math.pi
    turned = angle + labels * math.pi
    points = torch.stack((angle * turned.cos(), angle * turned.sin()), dim=1) / (3 * math.pi)
    return points + 0.02 * torch.randn(count, 2), labels


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(STEPS):
        points, labels = spirals(BATCH)
        with record_function("forward"):
            loss = nn.functional.cross_entropy(model(points), labels)
        with record_function("backward"):
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(f"step {step + 1}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
