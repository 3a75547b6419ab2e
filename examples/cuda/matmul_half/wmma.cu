/* cupilot 1
A warp per 16 x 16 outputs on tensor cores; tiles go through shared memory so that edges can be padded.
launch:
    m, k = a.shape
    n = b.shape[0]
    product[(cdiv(n, 16), cdiv(m, 16)), 32](a, b, out, m, n, k)
*/
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void product(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out,
                                   int m, int n, int k) {
    __shared__ __align__(32) __half tile_a[16 * 16], tile_b[16 * 16];
    __shared__ __align__(32) float result[16 * 16];
    const int first_row = blockIdx.y * 16, first_column = blockIdx.x * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::fill_fragment(sums, 0.0f);
    for (int start = 0; start < k; start += 16) {
        for (int i = threadIdx.x; i < 256; i += 32) {
            const int line = i / 16, depth = start + i % 16;
            tile_a[i] = first_row + line < m && depth < k ? a[(first_row + line) * k + depth] : __half(0.0f);
            tile_b[i] = first_column + line < n && depth < k ? b[(first_column + line) * k + depth] : __half(0.0f);
        }
        __syncwarp();
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> from_a;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> from_b;
        wmma::load_matrix_sync(from_a, tile_a, 16);
        wmma::load_matrix_sync(from_b, tile_b, 16);
        wmma::mma_sync(sums, from_a, from_b, sums);
        __syncwarp();
    }
    wmma::store_matrix_sync(result, sums, 16, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 256; i += 32) {
        const int row = first_row + i / 16, column = first_column + i % 16;
        if (row < m && column < n) out[row * n + column] = __float2half(result[i]);
    }
}
