/* cupilot 1
Constants, pointers to constants, a warning and the words asm, constructor and "syscall" in places where they mean
nothing.
launch:
    rows, cols = x.shape
    softmax[rows](x, out, cols)
*/
#include <cmath>
#warning "asm, constructor, syscall: only words"

static const float both[2] = {1, 1};
static const float* const first = both;
static const char words[] = "asm volatile(\"syscall\")";  // asm("syscall")

extern "C" void softmax(long row, const float* x, float* out, long cols) {
    x += row * cols, out += row * cols;
    float largest = x[0], sum = 0;
    for (long i = 1; i < cols; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (long i = 0; i < cols; ++i) sum += out[i] = expf(x[i] - largest) * first[(row + words[0]) & 1];
    for (long i = 0; i < cols; ++i) out[i] /= sum;
}
