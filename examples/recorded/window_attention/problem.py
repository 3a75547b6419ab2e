"""Attention in which a position sees only itself and the positions before it, with heads of 32."""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(Q, K, V, is_causal=True)


def get_inputs(batch: int = 2, heads: int = 8, length: int = 256, width: int = 32) -> list[torch.Tensor]:
    Q, K, V = (torch.randn(batch, heads, length, width) for _ in range(3))
    return [Q, K, V]


def get_init_inputs() -> list[object]:
    return []
