"""Maximum over overlapping windows of an image."""

import torch


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pool = torch.nn.MaxPool2d(4, stride=1, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.pool(x)
        return y


def get_inputs(batch: int = 4, channels: int = 32, height: int = 96, width: int = 104) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"batch": 32, "channels": 64, "height": 512, "width": 512}}
