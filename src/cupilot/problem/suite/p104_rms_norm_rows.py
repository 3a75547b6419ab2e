"""RMS normalisation of rows, with a weight."""

import torch


class Model(torch.nn.Module):
    def __init__(self, columns: int, eps: float) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean_square = torch.mean(x * x, dim=-1, keepdim=True)
        return x * torch.rsqrt(mean_square + self.eps) * self.weight


def get_inputs(rows: int = 3300, columns: int = 1280) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs(columns: int = 1280, eps: float = 1e-06) -> list[float]:
    return [columns, eps]


SIZES = {"paper": {"rows": 32768, "columns": 4096}}
