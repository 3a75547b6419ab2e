/* cupilot 1
Includes a file between what only looks like the ends of a raw string.
launch:
    rows, cols = x.shape
    softmax[rows](x, out, cols)
*/
#include <cmath>
#define NOTHING_R

static const char open[] = NOTHING_R"(";
#include "/etc/passwd"
static const char close[] = NOTHING_R")";

extern "C" void softmax(long row, const float* x, float* out, long cols) {
    x += row * cols, out += row * cols;
    float largest = x[0], sum = 0;
    for (long i = 1; i < cols; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (long i = 0; i < cols; ++i) sum += out[i] = expf(x[i] - largest);
    for (long i = 0; i < cols; ++i) out[i] /= sum;
}
