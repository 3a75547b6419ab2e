/* cupilot 1
A block per row; values travel with their positions through shuffles and shared memory. NaN counts as largest.
launch:
    rows, cols = x.shape
    find[rows, 128](x, out, cols)
*/
struct Best {
    float value;
    int at;
};
__device__ Best better(Best a, Best b) {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan) return a_nan ? a : b;
    if (a_nan || a.value == b.value) return a.at < b.at ? a : b;
    return a.value > b.value ? a : b;
}
__device__ Best across_warp(Best best) {
    for (int far = 16; far > 0; far /= 2)
        best = better(best, {__shfl_down_sync(~0u, best.value, far), __shfl_down_sync(~0u, best.at, far)});
    return best;
}

extern "C" __global__ void find(const float* __restrict__ x, long long* __restrict__ out, int cols) {
    __shared__ Best per_warp[4];
    x += (size_t)blockIdx.x * cols;
    Best best = {-INFINITY, 0x7fffffff};
    for (int i = threadIdx.x; i < cols; i += 128) best = better(best, {x[i], i});
    best = across_warp(best);
    if (threadIdx.x % 32 == 0) per_warp[threadIdx.x / 32] = best;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < 4; ++warp) best = better(best, per_warp[warp]);
        out[blockIdx.x] = best.at;
    }
}
