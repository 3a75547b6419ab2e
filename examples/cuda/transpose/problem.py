"""The transpose of a matrix, scaled."""

import torch

SIZES = {"gpu": {"rows": 8192, "columns": 8192}}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (2 * x).T.contiguous()


def get_inputs(rows: int = 130, columns: int = 200) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return []
