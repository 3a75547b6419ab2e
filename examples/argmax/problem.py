"""The position of the largest element along the middle dimension."""

import torch


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.argmax(x, dim=1)


def get_inputs(batch: int = 16, length: int = 256, columns: int = 2048) -> list[torch.Tensor]:
    return [torch.randn(batch, length, columns)]


def get_init_inputs() -> list[object]:
    return []
