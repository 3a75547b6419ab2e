"""cuPilot: evolves faster kernels for PyTorch references, and proves them."""
