"""Maximum over dilated windows of a sequence."""

import torch


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pool = torch.nn.MaxPool1d(8, stride=1, padding=4, dilation=3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.pool(x)
        return y


def get_inputs(batch: int = 9, channels: int = 48, length: int = 8192) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, length)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"batch": 64, "channels": 192, "length": 65536}}
