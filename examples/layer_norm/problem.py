"""Layer normalisation over channels, height and width together: few rows, each of them long."""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels: int, height: int, width: int, eps: float) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(channels, height, width))
        self.bias = torch.nn.Parameter(torch.zeros(channels, height, width))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


def get_inputs(batch: int = 16, channels: int = 64, height: int = 64, width: int = 64) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs(channels: int = 64, height: int = 64, width: int = 64, eps: float = 1e-5) -> list[float]:
    return [channels, height, width, eps]
