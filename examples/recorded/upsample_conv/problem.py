"""A transposed convolution that doubles an image, with the bias and ReLU of a decoder."""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels: int, out_channels: int) -> None:
        super().__init__()
        self.up = torch.nn.ConvTranspose2d(channels, out_channels, 4, stride=2, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.up(x))


def get_inputs(batch: int = 2, channels: int = 32, side: int = 48) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, side, side)]


def get_init_inputs(channels: int = 32, out_channels: int = 16) -> list[object]:
    return [channels, out_channels]
