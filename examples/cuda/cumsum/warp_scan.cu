/* cupilot 1
A block per row: scans inside warps by shuffles, across warps in shared memory, a carry between chunks.
launch:
    rows, cols = x.shape
    scan_rows[rows, 256](x, out, cols)
*/
extern "C" __global__ void scan_rows(const float* __restrict__ x, float* __restrict__ out, int cols) {
    __shared__ float per_warp[8];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    x += (size_t)blockIdx.x * cols;
    out += (size_t)blockIdx.x * cols;
    float carry = 0;
    for (int start = 0; start < cols; start += 256) {
        const int i = start + threadIdx.x;
        float v = i < cols ? x[i] : 0.0f;
        for (int far = 1; far < 32; far *= 2) {
            const float before = __shfl_up_sync(~0u, v, far);
            if (lane >= far) v += before;
        }
        if (lane == 31) per_warp[warp] = v;
        __syncthreads();
        float ahead = carry;
        for (int k = 0; k < 8; ++k) {
            if (k < warp) ahead += per_warp[k];
            carry += per_warp[k];
        }
        if (i < cols) out[i] = ahead + v;
        __syncthreads();
    }
}
