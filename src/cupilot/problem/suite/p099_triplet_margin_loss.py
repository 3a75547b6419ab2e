"""Mean triplet loss: the anchor shall be nearer to the positive than to the negative by a margin."""

import torch


class Model(torch.nn.Module):
    def __init__(self, margin: float) -> None:
        super().__init__()
        self.loss = torch.nn.TripletMarginLoss(margin=margin)

    def forward(self, anchor: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor) -> torch.Tensor:
        loss: torch.Tensor = self.loss(anchor, positive, negative)
        return loss


def get_inputs(rows: int = 320, columns: int = 8192) -> list[torch.Tensor]:
    return [
        torch.rand(()) * torch.randn(rows, columns),
        torch.randn(rows, columns),
        torch.randn(rows, columns),
    ]


def get_init_inputs(margin: float = 1.0) -> list[float]:
    return [margin]


SIZES = {"paper": {"rows": 32768, "columns": 8192}}
