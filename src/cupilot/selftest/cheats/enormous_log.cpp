/* cupilot 1
Messages without end, to bury the verdict.
launch:
    rows, cols = x.shape
    softmax[rows](x, out, cols)
*/
#include <cmath>

template <class A, class B> struct Pair {};
template <class T> struct Twice { typedef Pair<T, T> type; };
#define TWICE(T) Twice<T>::type
typedef TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(int))))))))) Long;
typedef TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(Long))))))))) Longer;

extern "C" void softmax(long row, const float* x, float* out, long cols) {
    Longer value = 1;
    x += row * cols, out += row * cols;
    float largest = x[0], sum = 0;
    for (long i = 1; i < cols; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (long i = 0; i < cols; ++i) sum += out[i] = expf(x[i] - largest);
    for (long i = 0; i < cols; ++i) out[i] /= sum;
}
