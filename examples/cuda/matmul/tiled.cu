/* cupilot 1
Tiles of both matrices in shared memory.
tune:
    TILE = 16 | 32
launch:
    m, k = a.shape
    n = b.shape[1]
    product[(cdiv(n, TILE), cdiv(m, TILE)), (TILE, TILE)](a, b, out, m, n, k)
*/
extern "C" __global__ void product(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
                                   int m, int n, int k) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int start = 0; start < k; start += TILE) {
        const int ka = start + threadIdx.x, kb = start + threadIdx.y;
        tile_a[threadIdx.y][threadIdx.x] = row < m && ka < k ? a[row * k + ka] : 0.0f;
        tile_b[threadIdx.y][threadIdx.x] = kb < k && column < n ? b[kb * n + column] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; ++i) sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n) out[row * n + column] = sum;
}
