"""Mean of one minus the cosine of rows."""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return torch.mean(1 - F.cosine_similarity(predictions, targets, dim=1))


def get_inputs(rows: int = 750, columns: int = 4096) -> list[torch.Tensor]:
    return [torch.randn(rows, columns), torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"rows": 32768, "columns": 4096}}
