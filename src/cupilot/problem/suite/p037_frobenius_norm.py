"""Division of a whole tensor by its Frobenius norm."""

import torch


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        norm: torch.Tensor = torch.linalg.vector_norm(x)
        return x / norm


def get_inputs(batch: int = 10, channels: int = 64, height: int = 96, width: int = 112) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"batch": 112, "channels": 64, "height": 512, "width": 512}}
