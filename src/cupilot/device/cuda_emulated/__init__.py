"""CUDA without a GPU: NVIDIA's compiler as a gate, and its PTX executed on the CPU. Measures no time."""
