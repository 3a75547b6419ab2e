"""Max pooling over windows of 2 by 2."""

import torch

SIZES = {"gpu": {"batch": 16, "channels": 64, "height": 256, "width": 256}}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.max_pool2d(x, 2)


def get_inputs(batch: int = 2, channels: int = 3, height: int = 38, width: int = 46) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs() -> list[object]:
    return []
