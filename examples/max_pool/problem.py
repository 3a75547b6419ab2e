"""Two-dimensional max-pooling with stride, padding and dilation."""

import torch


class Model(torch.nn.Module):
    def __init__(self, window: int, stride: int, padding: int, dilation: int) -> None:
        super().__init__()
        self.window = window
        self.stride = stride
        self.padding = padding
        self.dilation = dilation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.max_pool2d(x, self.window, self.stride, self.padding, self.dilation)


def get_inputs(batch: int = 8, channels: int = 16, height: int = 120, width: int = 136) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs(window: int = 4, stride: int = 1, padding: int = 1, dilation: int = 1) -> list[int]:
    return [window, stride, padding, dilation]
