"""Mean hinge loss against targets of -1 and 1 that belong to the columns."""

import torch


class Model(torch.nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return torch.mean(torch.clamp(1 - predictions * targets, min=0))


def get_inputs(rows: int = 2100, columns: int = 2048) -> list[torch.Tensor]:
    return [torch.randn(rows, columns), 2.0 * torch.randint(0, 2, (columns,)) - 1.0]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"rows": 32768, "columns": 32768}}
