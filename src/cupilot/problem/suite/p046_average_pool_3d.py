"""Mean over strided windows of a volume."""

import torch


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pool = torch.nn.AvgPool3d(3, stride=2, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.pool(x)
        return y


def get_inputs(
    batch: int = 3, channels: int = 16, depth: int = 36, height: int = 40, width: int = 64
) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, depth, height, width)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"batch": 16, "channels": 32, "depth": 128, "height": 128, "width": 256}}
