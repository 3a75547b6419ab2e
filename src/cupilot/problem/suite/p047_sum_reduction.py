"""Sum over the middle dimension, which stays with extent one."""

import torch


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sum(x, dim=1, keepdim=True)


def get_inputs(batch: int = 10, rows: int = 1000, columns: int = 1023) -> list[torch.Tensor]:
    return [torch.randn(batch, rows, columns)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"batch": 128, "rows": 4096, "columns": 4095}}
