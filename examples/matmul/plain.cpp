/* cupilot 1
Matrix product by its definition. One block is one row of the result.
launch:
    m, k = a.shape
    k, n = b.shape
    matmul[m](a, b, out, n, k)
*/
extern "C" void matmul(long row, const float* a, const float* b, float* out, long n, long k) {
    for (long j = 0; j < n; j++) out[row * n + j] = 0;
    for (long l = 0; l < k; l++)
        for (long j = 0; j < n; j++) out[row * n + j] += a[row * k + l] * b[l * n + j];
}
