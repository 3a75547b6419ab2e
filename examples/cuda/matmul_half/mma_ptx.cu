/* cupilot 1
ldmatrix and mma.sync in PTX: 16 x 8 outputs per warp and step, 16 x 32 per warp.
launch:
    m, k = a.shape
    n = b.shape[0]
    product[(cdiv(n, 32), cdiv(m, 16)), 32](a, b, out, m, n, k)
*/
#include <cuda_fp16.h>

__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

extern "C" __global__ void product(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out,
                                   int m, int n, int k) {
    __shared__ __align__(16) __half tile_a[16][24], tile_b[32][24];
    const int first_row = blockIdx.y * 16, first_column = blockIdx.x * 32, lane = threadIdx.x;
    float sums[4][4] = {};
    for (int start = 0; start < k; start += 16) {
        for (int i = lane; i < 16 * 16; i += 32) {
            const int row = first_row + i / 16, depth = start + i % 16;
            tile_a[i / 16][i % 16] = row < m && depth < k ? a[row * k + depth] : __half(0.0f);
        }
        for (int i = lane; i < 32 * 16; i += 32) {
            const int column = first_column + i / 16, depth = start + i % 16;
            tile_b[i / 16][i % 16] = column < n && depth < k ? b[column * k + depth] : __half(0.0f);
        }
        __syncwarp();
        unsigned fa[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
                     : "r"(shared_address(&tile_a[lane % 16][lane / 16 * 8])));
#pragma unroll
        for (int part = 0; part < 4; ++part) {
            unsigned fb[2];
            asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                         : "=r"(fb[0]), "=r"(fb[1])
                         : "r"(shared_address(&tile_b[part * 8 + lane % 8][lane / 8 % 2 * 8])));
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                         : "+f"(sums[part][0]), "+f"(sums[part][1]), "+f"(sums[part][2]), "+f"(sums[part][3])
                         : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
        }
        __syncwarp();
    }
#pragma unroll
    for (int part = 0; part < 4; ++part)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = first_row + lane / 4 + i / 2 * 8, column = first_column + part * 8 + lane % 4 * 2 + i % 2;
            if (row < m && column < n) out[row * n + column] = __float2half(sums[part][i]);
        }
}
