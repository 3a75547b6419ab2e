"""The product of two matrices."""

import torch


class Model(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 96), torch.randn(96, 80)]


def get_init_inputs() -> list[object]:
    return []
