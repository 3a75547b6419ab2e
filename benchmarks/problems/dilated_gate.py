"""A gated layer of a generative model of sound: two causal convolutions of three taps that lie `dilation`
apart, one for the signal and one for its gate, and the input added to what comes out."""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.dilation = 4
        self.signal = torch.nn.Conv1d(channels, channels, 3, dilation=self.dilation)
        self.gate = torch.nn.Conv1d(channels, channels, 3, dilation=self.dilation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        past = torch.nn.functional.pad(x, (2 * self.dilation, 0))
        return x + torch.tanh(self.signal(past)) * torch.sigmoid(self.gate(past))


def get_inputs(batch: int = 2, channels: int = 32, length: int = 4096) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, length)]


def get_init_inputs(channels: int = 32) -> list[object]:
    return [channels]
