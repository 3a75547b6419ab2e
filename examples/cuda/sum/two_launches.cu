/* cupilot 1
Partial sums per block, then one block adds them up.
tune:
    THREADS = 256 | 512
    BLOCKS  = 32 | 128
launch:
    partial = scratch(BLOCKS, f32)
    add_up[BLOCKS, THREADS](x, partial, x.numel)
    add_up[1, THREADS](partial, out, BLOCKS)
*/
extern "C" __global__ void add_up(const float* __restrict__ in, float* __restrict__ out, long n) {
    __shared__ float sums[THREADS];
    float sum = 0;
    for (long i = blockIdx.x * (long)THREADS + threadIdx.x; i < n; i += (long)gridDim.x * THREADS) sum += in[i];
    sums[threadIdx.x] = sum;
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}
