/* cupilot 1
Running sum, element after element. One block is one row.
launch:
    rows, cols = x.shape
    row_cumsum[rows](x, out, cols)
*/
extern "C" void row_cumsum(long row, const float* x, float* out, long cols) {
    float sum = 0;
    for (long i = row * cols; i < (row + 1) * cols; i++) out[i] = sum += x[i];
}
