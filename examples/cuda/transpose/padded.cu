/* cupilot 1
A tile of 32 x 32 in shared memory, padded by a column against bank conflicts.
launch:
    rows, cols = x.shape
    turn[(cdiv(cols, 32), cdiv(rows, 32)), (32, 8)](x, out, rows, cols)
*/
extern "C" __global__ void turn(const float* __restrict__ x, float* __restrict__ out, int rows, int cols) {
    __shared__ float tile[32][33];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (row + j < rows && column < cols) tile[threadIdx.y + j][threadIdx.x] = x[(row + j) * cols + column];
    __syncthreads();
    column = blockIdx.y * 32 + threadIdx.x;
    row = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (row + j < cols && column < rows) out[(row + j) * rows + column] = 2 * tile[threadIdx.x][threadIdx.y + j];
}
