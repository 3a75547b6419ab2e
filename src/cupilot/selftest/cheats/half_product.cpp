/* cupilot 1
Multiplies in half precision.
launch:
    rows, inner = a.shape
    cols = b.shape[1]
    product[rows](a, b, out, inner, cols)
*/
extern "C" void product(long row, const float* a, const float* b, float* out, long inner, long cols) {
    a += row * inner, out += row * cols;
    for (long j = 0; j < cols; ++j) out[j] = 0;
    for (long k = 0; k < inner; ++k)
        for (long j = 0; j < cols; ++j) out[j] += static_cast<float>(static_cast<_Float16>(a[k])) * static_cast<float>(static_cast<_Float16>(b[k * cols + j]));
}
