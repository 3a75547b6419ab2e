"""The product of two square matrices."""

import torch


class Model(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def get_inputs(n: int = 1024) -> list[torch.Tensor]:
    return [torch.randn(n, n), torch.randn(n, n)]


def get_init_inputs() -> list[object]:
    return []
