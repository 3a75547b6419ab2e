/* cupilot 1
16-byte loads and four independent sums per thread; then trees.
launch:
    parts = scratch(16, f32)
    partial[16, 256](x, parts, x.numel)
    finish[1, 32](parts, out, 16)
*/
__device__ float add_warp(float v) {
#pragma unroll
    for (int far = 16; far > 0; far >>= 1) v += __shfl_down_sync(0xffffffffu, v, far);
    return v;
}

extern "C" __global__ void partial(const float* __restrict__ x, float* __restrict__ parts, int n) {
    __shared__ float per_warp[8];
    const float4* x4 = reinterpret_cast<const float4*>(x);
    float a = 0, b = 0, c = 0, d = 0;
#pragma unroll 4
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n / 4; i += gridDim.x * 256) {
        const float4 v = __ldg(x4 + i);
        a += v.x, b += v.y, c += v.z, d += v.w;
    }
    const int rest = n / 4 * 4 + threadIdx.x;
    if (blockIdx.x == 0 && rest < n) a += x[rest];
    const float sum = add_warp((a + b) + (c + d));
    if (threadIdx.x % 32 == 0) per_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        const float all = add_warp(threadIdx.x < 8 ? per_warp[threadIdx.x] : 0.0f);
        if (threadIdx.x == 0) parts[blockIdx.x] = all;
    }
}
extern "C" __global__ void finish(const float* parts, float* out, int n) {
    const float all = add_warp(threadIdx.x < n ? parts[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) *out = all;
}
