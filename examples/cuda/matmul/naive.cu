/* cupilot 1
One thread per output element.
launch:
    m, k = a.shape
    n = b.shape[1]
    product[(cdiv(n, 16), cdiv(m, 16)), (16, 16)](a, b, out, m, n, k)
*/
extern "C" __global__ void product(const float* a, const float* b, float* out, int m, int n, int k) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || column >= n) return;
    float sum = 0;
    for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
    out[row * n + column] = sum;
}
