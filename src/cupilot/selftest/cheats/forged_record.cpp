/* cupilot 1
Replaces the record in which the compiler says what a kernel's arguments are.
launch:
    rows, cols = x.shape
    softmax[rows](x, out, cols)
*/
#include <cmath>

#undef CUPILOT_EXPORT
#define CUPILOT_EXPORT(name)
extern "C" void softmax(long row, const float* x, float* out, long cols) {
    x += row * cols, out += row * cols;
    float largest = x[0], sum = 0;
    for (long i = 1; i < cols; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (long i = 0; i < cols; ++i) sum += out[i] = expf(x[i] - largest);
    for (long i = 0; i < cols; ++i) out[i] /= sum;
}

extern "C" __attribute__((visibility("default"))) void cupilot_entry_softmax(const unsigned long* slots) {
    softmax(slots[0], (const float*)slots[1], (float*)slots[2], slots[3]);
}
