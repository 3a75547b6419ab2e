/* cupilot 1
64 x 64 outputs per block, 4 x 4 per thread in registers, 16 columns of a at a time through shared memory.
launch:
    m, k = a.shape
    n = b.shape[1]
    product[(cdiv(n, 64), cdiv(m, 64)), 256](a, b, out, m, n, k)
*/
template <int ROWS, int COLUMNS, int DEPTH, int EACH>
__device__ void product_of(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out, int m, int n, int k) {
    __shared__ float tile_a[DEPTH][ROWS + 4];
    __shared__ __align__(16) float tile_b[DEPTH][COLUMNS];
    const int first_row = blockIdx.y * ROWS, first_column = blockIdx.x * COLUMNS;
    const int my_row = threadIdx.x / (COLUMNS / EACH) * EACH, my_column = threadIdx.x % (COLUMNS / EACH) * EACH;
    float sums[EACH][EACH] = {};
    for (int start = 0; start < k; start += DEPTH) {
        for (int i = threadIdx.x; i < ROWS * DEPTH; i += blockDim.x) {
            const int row = i / DEPTH, depth = i % DEPTH;
            tile_a[depth][row] = first_row + row < m && start + depth < k ? a[(first_row + row) * k + start + depth] : 0.0f;
        }
        for (int i = threadIdx.x; i < DEPTH * COLUMNS; i += blockDim.x) {
            const int depth = i / COLUMNS, column = i % COLUMNS;
            tile_b[depth][column] = start + depth < k && first_column + column < n ? b[(start + depth) * n + first_column + column] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int depth = 0; depth < DEPTH; ++depth) {
            float from_a[EACH];
            const float4 from_b = *reinterpret_cast<const float4*>(&tile_b[depth][my_column]);
            const float columns[4] = {from_b.x, from_b.y, from_b.z, from_b.w};
#pragma unroll
            for (int i = 0; i < EACH; ++i) from_a[i] = tile_a[depth][my_row + i];
#pragma unroll
            for (int i = 0; i < EACH; ++i)
#pragma unroll
                for (int j = 0; j < EACH; ++j) sums[i][j] = fmaf(from_a[i], columns[j], sums[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < EACH; ++i)
#pragma unroll
        for (int j = 0; j < EACH; ++j) {
            const int row = first_row + my_row + i, column = first_column + my_column + j;
            if (row < m && column < n) out[row * n + column] = sums[i][j];
        }
}

extern "C" __global__ void __launch_bounds__(256) product(const float* a, const float* b, float* out, int m, int n, int k) {
    product_of<64, 64, 16, 4>(a, b, out, m, n, k);
}
