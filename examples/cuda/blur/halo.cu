/* cupilot 1
A tile with its halo in shared memory; weights in constant memory.
launch:
    height, width = u.shape
    blur[(cdiv(width, 32), cdiv(height, 8)), (32, 8)](u, out, height, width)
*/
__constant__ float weights[2] = {0.5f, 0.125f};

extern "C" __global__ void blur(const float* __restrict__ u, float* __restrict__ out, int height, int width) {
    __shared__ float tile[10][34];
    const int left = blockIdx.x * 32 - 1, top = blockIdx.y * 8 - 1;
    for (int i = threadIdx.y * 32 + threadIdx.x; i < 10 * 34; i += 256) {
        const int y = top + i / 34, x = left + i % 34;
        tile[i / 34][i % 34] = y >= 0 && y < height && x >= 0 && x < width ? u[y * width + x] : 0.0f;
    }
    __syncthreads();
    const int x = left + 1 + threadIdx.x, y = top + 1 + threadIdx.y, i = threadIdx.y + 1, j = threadIdx.x + 1;
    if (x >= width || y >= height) return;
    const float sides = tile[i - 1][j] + tile[i + 1][j] + tile[i][j - 1] + tile[i][j + 1];
    out[y * width + x] = weights[0] * tile[i][j] + weights[1] * sides;
}
