/* cupilot 1
Two halves per access, computed in single precision.
launch:
    n = x.numel
    gelu[cdiv(cdiv(n, 2), 256), 256](x, out, n)
*/
#include <cuda_fp16.h>

__device__ float gelu_of(float v) { return 0.5f * v * (1 + tanhf(0.7978845608f * (v + 0.044715f * v * v * v))); }

extern "C" __global__ void gelu(const __half* __restrict__ x, __half* __restrict__ out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (2 * i + 1 < n) {
        const float2 v = __half22float2(reinterpret_cast<const __half2*>(x)[i]);
        reinterpret_cast<__half2*>(out)[i] = __floats2half2_rn(gelu_of(v.x), gelu_of(v.y));
    } else if (2 * i < n) {
        out[2 * i] = __float2half(gelu_of(__half2float(x[2 * i])));
    }
}
