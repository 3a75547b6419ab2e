"""Contraction of a four-dimensional tensor's last dimension with a matrix."""

import torch


class Model(torch.nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bijl,lk->bijk", A, B)


def get_inputs(batch: int = 3, i: int = 20, j: int = 64, k: int = 256, n: int = 320) -> list[torch.Tensor]:
    return [torch.randn(batch, i, j, k), torch.randn(k, n)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"batch": 8, "i": 256, "j": 512, "k": 256, "n": 768}}
