"""The sum of two vectors."""

import torch

SIZES = {"gpu": {"n": 1 << 26}}


class Model(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a + b


def get_inputs(n: int = 100_003) -> list[torch.Tensor]:
    return [torch.randn(n), torch.randn(n)]


def get_init_inputs() -> list[object]:
    return []
