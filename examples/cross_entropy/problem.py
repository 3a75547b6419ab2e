"""Cross-entropy of logits against class indices, averaged over the rows."""

import torch


class Model(torch.nn.Module):
    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(logits, target)


def get_inputs(rows: int = 2048, classes: int = 8192) -> list[torch.Tensor]:
    return [torch.randn(rows, classes), torch.randint(0, classes, (rows,))]


def get_init_inputs() -> list[object]:
    return []
