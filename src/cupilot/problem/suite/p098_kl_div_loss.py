"""Kullback-Leibler divergence between rows of probabilities, mean over the rows."""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.kl_div(torch.log(predictions), targets, reduction="batchmean")


def get_inputs(rows: int = 1000, columns: int = 1024) -> list[torch.Tensor]:
    logits = torch.rand(()) * torch.rand(rows, columns)
    return [torch.softmax(logits, dim=1), torch.softmax(torch.rand(rows, columns), dim=1)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"rows": 16384, "columns": 16384}}
