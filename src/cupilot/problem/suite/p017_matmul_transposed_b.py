"""Matrix product whose right factor is stored transposed."""

import torch


class Model(torch.nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B.T)


def get_inputs(m: int = 336, k: int = 1312, n: int = 672) -> list[torch.Tensor]:
    return [torch.randn(m, k), torch.randn(n, k)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"m": 2048, "k": 8192, "n": 4096}}
