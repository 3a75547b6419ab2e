/* cupilot 1
Works out the waves in every call.
launch:
    rows, cols = x.shape
    waves[rows](x, out, cols)
*/
#include <cmath>

extern "C" void waves(long row, const float* x, float* out, long cols) {
    for (long j = 0; j < cols; ++j)
        out[row * cols + j] = x[row * cols + j] + sin(exp2(-double(j) / cols * 13) * row);
}
