/* cupilot 1
Every answer is written.
launch:
    positive[x.shape[0]](x, out, x.shape[1])
*/
extern "C" void positive(long row, const float* x, bool* out, long cols) {
    for (long i = row * cols; i < (row + 1) * cols; ++i) out[i] = x[i] > 0;
}
