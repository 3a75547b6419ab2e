"""Mean over large windows of an image that do not overlap."""

import torch


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pool = torch.nn.AvgPool2d(11)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.pool(x)
        return y


def get_inputs(batch: int = 3, channels: int = 28, height: int = 258, width: int = 270) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"batch": 16, "channels": 64, "height": 2048, "width": 2048}}
