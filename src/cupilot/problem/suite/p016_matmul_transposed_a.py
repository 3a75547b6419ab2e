"""Matrix product whose left factor is stored transposed."""

import torch


class Model(torch.nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A.T, B)


def get_inputs(m: int = 352, k: int = 1280, n: int = 704) -> list[torch.Tensor]:
    return [torch.randn(k, m), torch.randn(k, n)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"m": 2048, "k": 8192, "n": 4096}}
