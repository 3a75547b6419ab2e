"""Division of every row by its mean absolute value."""

import torch


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / torch.mean(torch.abs(x), dim=1, keepdim=True)


def get_inputs(rows: int = 100, columns: int = 65535) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"rows": 32768, "columns": 65535}}
