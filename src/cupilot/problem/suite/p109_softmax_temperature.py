"""Softmax of rows at a temperature."""

import torch


class Model(torch.nn.Module):
    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x / self.temperature, dim=-1)


def get_inputs(rows: int = 1500, columns: int = 2500) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs(temperature: float = 0.7) -> list[float]:
    return [temperature]


SIZES = {"paper": {"rows": 32768, "columns": 16384}}
