"""The sum of all elements."""

import torch

SIZES = {"gpu": {"n": 1 << 26}}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sum(x)


def get_inputs(n: int = 50021) -> list[torch.Tensor]:
    return [torch.randn(n)]


def get_init_inputs() -> list[object]:
    return []
