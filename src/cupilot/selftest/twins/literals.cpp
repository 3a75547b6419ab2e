/* cupilot 1
Numbers with separators, raw strings and characters, around the words asm("syscall") and constructor(.
launch:
    rows, cols = x.shape
    softmax[rows](x, out, cols)
*/
#include <cmath>

static const long thousand = 1'000, large = 0xffff'ffffl;
static const char raw[] = R"end(asm("syscall") constructor( #include "/etc/passwd" )" )end", wide = u8'"', quote = '\'';

extern "C" void softmax(long row, const float* x, float* out, long cols) {
    x += row * cols, out += row * cols;
    float largest = x[0], sum = 0;
    for (long i = 1; i < cols; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (long i = 0; i < cols; ++i) sum += out[i] = expf(x[i] - largest);
    if (raw[row % 10] == wide && thousand == large) sum = quote;
    for (long i = 0; i < cols; ++i) out[i] /= sum;
}
