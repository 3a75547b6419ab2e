"""Running sum along rows of the elements a mask selects."""

import torch


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x * mask, dim=1)


def get_inputs(rows: int = 130, columns: int = 32768) -> list[torch.Tensor]:
    return [torch.randn(rows, columns), torch.randint(0, 2, (rows, columns)).bool()]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"rows": 32768, "columns": 32768}}
