/* cupilot 1
Four warps make 32 x 32 outputs on tensor cores; three stages of tiles arrive by asynchronous copies.
Rows whose length is no multiple of 8 are copied by plain loads.
launch:
    m, k = a.shape
    n = b.shape[0]
    product[(cdiv(n, 32), cdiv(m, 32)), 128](a, b, out, m, n, k)
*/
#include <cuda_pipeline.h>
#include <mma.h>
using namespace nvcuda;

constexpr int kTile = 32, kDepth = 16, kStages = 3, kPitch = kDepth + 8;

__device__ void bring(__half (*tile)[kPitch], const __half* from, int first, int lines, int start, int k) {
    if (k % 8 == 0) {
        const int line = threadIdx.x / 2 % kTile, depth = threadIdx.x % 2 * 8;
        if (threadIdx.x / 64 == 0) {
            const bool inside = first + line < lines && start + depth < k;
            __pipeline_memcpy_async(&tile[line][depth], inside ? from + (first + line) * k + start + depth : from, 16, inside ? 0 : 16);
        }
    } else {
        for (int i = threadIdx.x; i < kTile * kDepth; i += 128) {
            const int line = i / kDepth, depth = i % kDepth;
            tile[line][depth] = first + line < lines && start + depth < k ? from[(first + line) * k + start + depth] : __half(0.0f);
        }
    }
}

extern "C" __global__ void __launch_bounds__(128) product(const __half* __restrict__ a, const __half* __restrict__ b,
                                                          __half* __restrict__ out, int m, int n, int k) {
    __shared__ __align__(128) __half tile_a[kStages][kTile][kPitch], tile_b[kStages][kTile][kPitch];
    __shared__ __align__(128) float result[kTile][kTile + 4];
    const int first_row = blockIdx.y * kTile, first_column = blockIdx.x * kTile;
    const int warp = threadIdx.x / 32, my_row = warp / 2 * 16, my_column = warp % 2 * 16;
    const auto begin = [&](int stage, int start) {
        if (start < k) {
            bring(tile_a[stage], a, first_row, m, start, k);
            bring(tile_b[stage], b, first_column, n, start, k);
        }
        __pipeline_commit();
    };
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::fill_fragment(sums, 0.0f);
    for (int stage = 0; stage < kStages - 1; ++stage) begin(stage, stage * kDepth);
    for (int step = 0; step * kDepth < k; ++step) {
        __pipeline_wait_prior(kStages - 2);
        __syncthreads();
        begin((step + kStages - 1) % kStages, (step + kStages - 1) * kDepth);
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> from_a;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> from_b;
        wmma::load_matrix_sync(from_a, &tile_a[step % kStages][my_row][0], kPitch);
        wmma::load_matrix_sync(from_b, &tile_b[step % kStages][my_column][0], kPitch);
        wmma::mma_sync(sums, from_a, from_b, sums);
    }
    wmma::store_matrix_sync(&result[my_row][my_column], sums, kTile + 4, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < kTile * kTile; i += 128) {
        const int row = first_row + i / kTile, column = first_column + i % kTile;
        if (row < m && column < n) out[row * n + column] = __float2half(result[i / kTile][i % kTile]);
    }
}
