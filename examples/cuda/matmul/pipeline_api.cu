/* cupilot 1
Three stages of tiles in a cuda::pipeline of the block; copies of 4 bytes, zeros where the tile sticks out.
launch:
    m, k = a.shape
    n = b.shape[1]
    product[(cdiv(n, 16), cdiv(m, 16)), (16, 16)](a, b, out, m, n, k)
*/
#include <cuda/pipeline>

constexpr int kStages = 3, kTile = 16;
using Pipeline = cuda::pipeline<cuda::thread_scope_thread>;

__device__ void bring(Pipeline& pipe, float& to, const float* from, bool inside) {
    if (inside) cuda::memcpy_async(&to, from, cuda::aligned_size_t<4>(4), pipe);
    else to = 0.0f;
}

extern "C" __global__ void product(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
                                   int m, int n, int k) {
    __shared__ float tile_a[kStages][kTile][kTile + 1], tile_b[kStages][kTile][kTile];
    Pipeline pipe = cuda::make_pipeline();
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * kTile + y, column = blockIdx.x * kTile + x;
    const int steps = (k + kTile - 1) / kTile;
    const auto begin = [&](int step) {
        pipe.producer_acquire();
        if (step < steps) {
            const int stage = step % kStages, ka = step * kTile + x, kb = step * kTile + y;
            bring(pipe, tile_a[stage][y][x], a + row * k + ka, row < m && ka < k);
            bring(pipe, tile_b[stage][y][x], b + kb * n + column, kb < k && column < n);
        }
        pipe.producer_commit();
    };
    for (int step = 0; step < kStages - 1; ++step) begin(step);
    float sum = 0;
    for (int step = 0; step < steps; ++step) {
        cuda::pipeline_consumer_wait_prior<kStages - 2>(pipe);
        __syncthreads();
        begin(step + kStages - 1);
        const int stage = step % kStages;
#pragma unroll
        for (int i = 0; i < kTile; ++i) sum += tile_a[stage][y][i] * tile_b[stage][i][x];
        pipe.consumer_release();
    }
    if (row < m && column < n) out[row * n + column] = sum;
}
