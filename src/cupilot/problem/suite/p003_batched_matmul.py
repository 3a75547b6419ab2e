"""Batch of independent matrix products."""

import torch


class Model(torch.nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.bmm(A, B)


def get_inputs(batch: int = 20, m: int = 120, k: int = 256, n: int = 480) -> list[torch.Tensor]:
    return [torch.randn(batch, m, k), torch.randn(batch, k, n)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"batch": 128, "m": 512, "k": 1024, "n": 2048}}
