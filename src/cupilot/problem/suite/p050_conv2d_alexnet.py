"""First convolution of AlexNet: an 11x11 window with stride 4 and a bias."""

import torch


class Model(torch.nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, 11, stride=4, padding=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.conv(x)
        return y


def get_inputs(batch: int = 4, in_channels: int = 3, size: int = 224) -> list[torch.Tensor]:
    return [torch.randn(batch, in_channels, size, size)]


def get_init_inputs(in_channels: int = 3, out_channels: int = 96) -> list[int]:
    return [in_channels, out_channels]


SIZES = {"paper": {"batch": 256, "size": 224}}
