/* cupilot 1
Templates that keep the compiler busy for ever.
launch:
    rows, cols = x.shape
    softmax[rows](x, out, cols)
*/
#include <cmath>

template <long N> struct Bomb { static constexpr long value = Bomb<N - 1>::value + Bomb<N - 2>::value; };

extern "C" void softmax(long row, const float* x, float* out, long cols) {
    out[row * cols] = Bomb<1 << 20>::value;
    x += row * cols, out += row * cols;
    float largest = x[0], sum = 0;
    for (long i = 1; i < cols; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (long i = 0; i < cols; ++i) sum += out[i] = expf(x[i] - largest);
    for (long i = 0; i < cols; ++i) out[i] /= sum;
}
