"""A weighted mean of every point and its neighbours; zeros outside."""

import torch

SIZES = {"gpu": {"height": 8192, "width": 8192}}


class Model(torch.nn.Module):
    def forward(self, u: torch.Tensor) -> torch.Tensor:
        padded = torch.nn.functional.pad(u, (1, 1, 1, 1))
        sides = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
        return 0.5 * u + 0.125 * sides


def get_inputs(height: int = 100, width: int = 150) -> list[torch.Tensor]:
    return [torch.randn(height, width)]


def get_init_inputs() -> list[object]:
    return []
