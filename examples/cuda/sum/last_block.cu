/* cupilot 1
One launch: the block that comes last, by an atomic counter, adds up the parts of all.
launch:
    parts = scratch(32, f32)
    arrived = scratch(1, i32)
    zero(arrived)
    add_up[32, 256](x, parts, arrived, out, x.numel)
*/
__device__ float add_block(float v) {
    __shared__ float per_warp[8];
    for (int far = 16; far > 0; far /= 2) v += __shfl_xor_sync(~0u, v, far);
    __syncthreads();
    if (threadIdx.x % 32 == 0) per_warp[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (int warp = 0; warp < 8; ++warp) v += per_warp[warp];
    return v;
}

extern "C" __global__ void add_up(const float* __restrict__ x, float* parts, int* arrived, float* out, int n) {
    __shared__ bool last;
    float sum = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += x[i];
    sum = add_block(sum);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(arrived, 1) == (int)gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    sum = add_block(threadIdx.x < gridDim.x ? parts[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) *out = sum;
}
