/* cupilot 1
Position of the largest element along dimension 1; the first one if there are several, and a NaN is the largest.
One block is one batch entry.
launch:
    batch, length, cols = x.shape
    arg_max[batch](x, out, length, cols)
*/
#include <cmath>

extern "C" void arg_max(long entry, const float* x, long* out, long length, long cols) {
    x += entry * length * cols;
    out += entry * cols;
    for (long j = 0; j < cols; j++) {
        long best = 0;
        for (long i = 1; i < length; i++) {
            float value = x[i * cols + j], champion = x[best * cols + j];
            if (value > champion || (std::isnan(value) && !std::isnan(champion))) best = i;
        }
        out[j] = best;
    }
}
