/* cupilot 1
GELU, exact: x times the normal distribution function at x. One block is 4096 elements.
launch:
    n = x.numel
    gelu[cdiv(n, 4096)](x, out, n)
*/
#include <cmath>

extern "C" void gelu(long block, const float* x, float* out, long n) {
    for (long i = block * 4096; i < (block + 1) * 4096 && i < n; i++)
        out[i] = 0.5f * x[i] * (1.0f + std::erf(x[i] * 0.70710678f));
}
