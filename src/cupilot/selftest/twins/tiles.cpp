/* cupilot 1
Tiles of tunable width, with the columns that do not fill one; a second block dimension.
tune:
    TILE = 16 | 32
where:
    TILE <= 64
launch:
    rows, inner = a.shape
    cols = b.shape[1]
    product[rows, cdiv(cols, TILE)](a, b, out, inner, cols)
*/
extern "C" void product(long row, long tile, const float* a, const float* b, float* out, long inner, long cols) {
    long first = tile * TILE, last = first + TILE < cols ? first + TILE : cols;
    for (long j = first; j < last; ++j) {
        float sum = 0;
        for (long k = 0; k < inner; ++k) sum += a[row * inner + k] * b[k * cols + j];
        out[row * cols + j] = sum;
    }
}
