/* cupilot 1
Returns its input.
launch:
    rows, cols = x.shape
    softmax[rows](x, out, cols)
*/
extern "C" void softmax(long row, const float* x, float* out, long cols) {
    for (long i = 0; i < cols; ++i) out[row * cols + i] = x[row * cols + i];
}
