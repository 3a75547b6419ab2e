"""Mean squared difference."""

import torch


class Model(torch.nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return torch.mean((predictions - targets) ** 2)


def get_inputs(rows: int = 2100, columns: int = 2048) -> list[torch.Tensor]:
    return [torch.rand(()) * torch.randn(rows, columns), torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"rows": 32768, "columns": 32768}}
