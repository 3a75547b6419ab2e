/* cupilot 1
Cached and streaming accesses written in PTX.
launch:
    add[cdiv(a.numel, 256), 256](a, b, out, a.numel)
*/
__device__ __forceinline__ float load_streaming(const float* p) {
    float v;
    asm volatile("ld.global.nc.L1::no_allocate.f32 %0, [%1];" : "=f"(v) : "l"(p));
    return v;
}
__device__ __forceinline__ void store_streaming(float* p, float v) {
    asm volatile("st.global.cs.f32 [%0], %1;" ::"l"(p), "f"(v) : "memory");
}

extern "C" __global__ void add(const float* a, const float* b, float* out, int n) {
    int i;
    asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(i) : "r"(blockIdx.x), "r"(blockDim.x), "r"(threadIdx.x));
    if (i >= n) return;
    float sum;
    asm("add.rn.f32 %0, %1, %2;" : "=f"(sum) : "f"(load_streaming(a + i)), "f"(load_streaming(b + i)));
    store_streaming(out + i, sum);
}
