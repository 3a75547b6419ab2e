"""Scaled dot-product attention without a mask."""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(Q, K, V)


def get_inputs(batch: int = 2, heads: int = 4, length: int = 200, width: int = 256) -> list[torch.Tensor]:
    Q, K, V = (torch.randn(batch, heads, length, width) for _ in range(3))
    return [Q, K, V]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"batch": 32, "heads": 32, "length": 512, "width": 1024}}
