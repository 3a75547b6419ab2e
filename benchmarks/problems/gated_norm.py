"""A residual block's end with a twist: the sum with the skip is normalised in groups of channels, and every
channel is gated by the channel before it, the first one by the last."""

import torch


class Model(torch.nn.Module):
    def __init__(self, groups: int, width: int) -> None:
        super().__init__()
        self.groups = groups
        self.scale = torch.nn.Parameter(torch.rand(groups * width) + 0.5)
        self.shift = torch.nn.Parameter(torch.randn(groups * width))
        self.eps = 1e-5

    def forward(self, x: torch.Tensor, skip: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.group_norm(x + skip, self.groups, self.scale, self.shift, self.eps)
        before = torch.cat((y[:, -1:], y[:, :-1]), dim=1)
        return skip + y * torch.sigmoid(before)


def get_inputs(batch: int = 8, groups: int = 8, width: int = 8, length: int = 2048) -> list[torch.Tensor]:
    return [torch.randn(batch, groups * width, length) for _ in range(2)]


def get_init_inputs(groups: int = 8, width: int = 8) -> list[object]:
    return [groups, width]
