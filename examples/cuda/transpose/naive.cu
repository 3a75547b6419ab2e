/* cupilot 1
Rows are read in order, columns written with a stride.
launch:
    rows, cols = x.shape
    turn[(cdiv(cols, 32), cdiv(rows, 8)), (32, 8)](x, out, rows, cols)
*/
extern "C" __global__ void turn(const float* x, float* out, int rows, int cols) {
    const int row = blockIdx.y * 8 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    if (row < rows && column < cols) out[column * rows + row] = 2 * x[row * cols + column];
}
