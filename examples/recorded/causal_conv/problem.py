"""A causal depthwise convolution of four taps with SiLU, as state-space models use it: an output sees its own
position and the three before it, in its own channel."""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv1d(channels, channels, 4, groups=channels, padding=3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.silu(self.conv(x)[..., : x.shape[-1]])


def get_inputs(batch: int = 4, channels: int = 128, length: int = 1024) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, length)]


def get_init_inputs(channels: int = 128) -> list[object]:
    return [channels]
