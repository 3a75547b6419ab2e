/* cupilot 1
A warp makes 16 x 16 outputs: ldmatrix, mma.sync, and stmatrix where there is one; rows leave in order.
launch:
    m, k = a.shape
    n = b.shape[0]
    product[(cdiv(n, 16), cdiv(m, 16)), 32](a, b, out, m, n, k)
*/
#include <cuda_fp16.h>

constexpr int kPitch = 24;

__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ void bring(__half (*tile)[kPitch], const __half* from, int first, int lines, int start, int k) {
    for (int i = threadIdx.x; i < 256; i += 32) {
        const int line = first + i / 16, depth = start + i % 16;
        tile[i / 16][i % 16] = line < lines && depth < k ? from[line * k + depth] : __half(0.0f);
    }
}

__device__ void load(unsigned (&part)[4], __half (*tile)[kPitch]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(part[0]), "=r"(part[1]), "=r"(part[2]), "=r"(part[3])
                 : "r"(shared_address(&tile[threadIdx.x % 16][threadIdx.x / 16 * 8])));
}

__device__ void multiply(float (&sums)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ unsigned packed(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return reinterpret_cast<const unsigned&>(pair);
}

extern "C" __global__ void product(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out,
                                   int m, int n, int k) {
    __shared__ __align__(16) __half tile_a[16][kPitch], tile_b[16][kPitch];
    const int first_row = blockIdx.y * 16, first_column = blockIdx.x * 16, lane = threadIdx.x;
    float sums[2][4] = {};
    for (int start = 0; start < k; start += 16) {
        bring(tile_a, a, first_row, m, start, k);
        bring(tile_b, b, first_column, n, start, k);
        __syncwarp();
        unsigned from_a[4], from_b[4];
        load(from_a, tile_a);
        load(from_b, tile_b);
        multiply(sums[0], from_a, from_b[0], from_b[2]);
        multiply(sums[1], from_a, from_b[1], from_b[3]);
        __syncwarp();
    }
    const unsigned parts[4] = {packed(sums[0][0], sums[0][1]), packed(sums[0][2], sums[0][3]),
                               packed(sums[1][0], sums[1][1]), packed(sums[1][2], sums[1][3])};
#if __CUDA_ARCH__ >= 900
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::
                     "r"(shared_address(&tile_a[lane % 16][lane / 16 * 8])),
                 "r"(parts[0]), "r"(parts[1]), "r"(parts[2]), "r"(parts[3]) : "memory");
#else
    for (int part = 0; part < 4; ++part)
        *reinterpret_cast<unsigned*>(&tile_a[part % 2 * 8 + lane / 4][part / 2 * 8 + lane % 4 * 2]) = parts[part];
#endif
    __syncwarp();
    for (int i = lane; i < 256; i += 32) {
        const int row = first_row + i / 16, column = first_column + i % 16;
        if (row < m && column < n) out[row * n + column] = tile_a[i / 16][i % 16];
    }
}
