"""Log-softmax followed by the negative log-likelihood of class numbers."""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.nll_loss(F.log_softmax(logits, dim=-1), targets)


def get_inputs(rows: int = 4400, classes: int = 1000) -> list[torch.Tensor]:
    return [torch.randn(rows, classes), torch.randint(0, classes, (rows,))]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"rows": 65536, "classes": 16384}}
