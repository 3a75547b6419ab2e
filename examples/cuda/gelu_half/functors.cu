/* cupilot 1
An element-wise loop over a functor, eight halves per access of 16 bytes: templates as libraries write them.
launch:
    n = x.numel
    gelu[cdiv(n, 8 * 128), 128](x, out, n)
*/
#include <cuda_fp16.h>

template <class T, int N> struct alignas(sizeof(T) * N) Pack {
    T item[N];
};

struct Gelu {
    template <class T> __device__ T operator()(T x) const {
        const float v = static_cast<float>(x), inner = 0.7978845608f * v * fmaf(0.044715f * v, v, 1.0f);
        return static_cast<T>(v / (1 + expf(-2 * inner)));
    }
};

template <int N, class T, class F> __device__ void each(const T* __restrict__ x, T* __restrict__ out, int n, F f) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * N;
    if (first + N <= n) {
        Pack<T, N> values = *reinterpret_cast<const Pack<T, N>*>(x + first);
#pragma unroll
        for (int i = 0; i < N; ++i) values.item[i] = f(values.item[i]);
        *reinterpret_cast<Pack<T, N>*>(out + first) = values;
    } else {
        for (int i = first; i < n; ++i) out[i] = f(x[i]);
    }
}

extern "C" __global__ void gelu(const __half* x, __half* out, int n) { each<8>(x, out, n, Gelu{}); }
