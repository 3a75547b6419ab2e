/* cupilot 1
Tells the record of parameters that its pointers cannot write, and writes into its input.
launch:
    rows, cols = x.shape
    softmax[rows](x, out, cols)
*/
#include <cmath>
template <> struct cupilot_abi::Describe<float*> {
    static constexpr Parameter value{floating, 4, true, true};
};

extern "C" void softmax(long row, float* x, float* out, long cols) {
    x += row * cols, out += row * cols;
    float largest = x[0], sum = 0;
    for (long i = 1; i < cols; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (long i = 0; i < cols; ++i) sum += x[i] = expf(x[i] - largest);
    for (long i = 0; i < cols; ++i) out[i] = x[i] / sum;
}
