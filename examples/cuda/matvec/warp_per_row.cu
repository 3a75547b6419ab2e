/* cupilot 1
A warp per row, four rows per block; the vector is read through the read-only cache.
launch:
    rows, cols = a.shape
    multiply[cdiv(rows, 4), (32, 4)](a, x, out, rows, cols)
*/
extern "C" __global__ void multiply(const float* __restrict__ a, const float* __restrict__ x, float* __restrict__ out, int rows, int cols) {
    const int row = blockIdx.x * 4 + threadIdx.y;
    if (row >= rows) return;
    float sum = 0;
    for (int i = threadIdx.x; i < cols; i += 32) sum = fmaf(a[(size_t)row * cols + i], __ldg(x + i), sum);
    for (int far = 16; far > 0; far /= 2) sum += __shfl_down_sync(~0u, sum, far);
    if (threadIdx.x == 0) out[row] = sum;
}
