"""Layer normalisation of rows, with weight and bias."""

import torch


class Model(torch.nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(columns)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.norm(x)
        return y


def get_inputs(rows: int = 9000, columns: int = 1000) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs(columns: int = 1000) -> list[int]:
    return [columns]


SIZES = {"paper": {"rows": 32768, "columns": 4096}}
