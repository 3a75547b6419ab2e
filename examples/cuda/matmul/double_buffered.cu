/* cupilot 1
Two stages of tiles: asynchronous copies fill one while the other is multiplied.
launch:
    m, k = a.shape
    n = b.shape[1]
    product[(cdiv(n, 16), cdiv(m, 16)), (16, 16)](a, b, out, m, n, k)
*/
#include <cuda_pipeline.h>

__device__ void fetch(float* to, const float* from, bool inside) { __pipeline_memcpy_async(to, from, 4, inside ? 0 : 4); }

extern "C" __global__ void product(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
                                   int m, int n, int k) {
    __shared__ float tile_a[2][16][16], tile_b[2][16][16];
    const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    const auto begin = [&](int stage, int start) {
        const int ka = start + threadIdx.x, kb = start + threadIdx.y;
        const bool in_a = row < m && ka < k, in_b = kb < k && column < n;
        fetch(&tile_a[stage][threadIdx.y][threadIdx.x], in_a ? a + row * k + ka : a, in_a);
        fetch(&tile_b[stage][threadIdx.y][threadIdx.x], in_b ? b + kb * n + column : b, in_b);
        __pipeline_commit();
    };
    float sum = 0;
    begin(0, 0);
    for (int start = 0, stage = 0; start < k; start += 16, stage ^= 1) {
        if (start + 16 < k) {
            begin(stage ^ 1, start + 16);
            __pipeline_wait_prior(1);
        } else {
            __pipeline_wait_prior(0);
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; ++i) sum += tile_a[stage][threadIdx.y][i] * tile_b[stage][i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n) out[row * n + column] = sum;
}
