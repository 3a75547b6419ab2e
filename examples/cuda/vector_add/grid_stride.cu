/* cupilot 1
A fixed number of blocks strides over the elements.
tune:
    THREADS = 128 | 256
    BLOCKS  = 64 | 216
launch:
    add[BLOCKS, THREADS](a, b, out, a.numel)
*/
extern "C" __global__ void __launch_bounds__(THREADS) add(const float* __restrict__ a, const float* __restrict__ b,
                                                         float* __restrict__ out, size_t n) {
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) out[i] = __ldg(a + i) + __ldg(b + i);
}
