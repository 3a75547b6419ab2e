/* cupilot 1
Packs the second matrix into an array of its own on the stack, as large as a quarter of a megabyte, in every call.
launch:
    rows, inner = a.shape
    cols = b.shape[1]
    product[1](a, b, out, rows, inner, cols)
*/
extern "C" void product(long, const float* a, const float* b, float* out, long rows, long inner, long cols) {
    constexpr long kInner = 64, kCols = 1024;
    float packed[kInner * kCols];
    for (long i = 0; i < rows * cols; ++i) out[i] = 0;
    for (long first = 0; first < cols; first += kCols)
        for (long top = 0; top < inner; top += kInner) {
            long wide = cols - first < kCols ? cols - first : kCols, deep = inner - top < kInner ? inner - top : kInner;
            for (long k = 0; k < deep; ++k)
                for (long j = 0; j < wide; ++j) packed[k * kCols + j] = b[(top + k) * cols + first + j];
            for (long i = 0; i < rows; ++i)
                for (long k = 0; k < deep; ++k)
                    for (long j = 0; j < wide; ++j)
                        out[i * cols + first + j] += a[i * inner + top + k] * packed[k * kCols + j];
        }
}
