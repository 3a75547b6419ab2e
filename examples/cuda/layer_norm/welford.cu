/* cupilot 1
A warp per row: mean and squared distances in one pass (Welford), combined by shuffles.
launch:
    rows, cols = x.shape
    normalise[cdiv(rows, 4), 128](x, norm_weight, norm_bias, out, rows, cols, 1e-5)
*/
struct Moments {
    float count, mean, squares;
};
__device__ Moments combine(Moments a, Moments b) {
    const float count = a.count + b.count, delta = b.mean - a.mean;
    if (count == 0) return a;
    return {count, a.mean + delta * (b.count / count), a.squares + b.squares + delta * delta * (a.count * b.count / count)};
}

extern "C" __global__ void normalise(const float* __restrict__ x, const float* __restrict__ weight,
                                     const float* __restrict__ bias, float* __restrict__ out, int rows, int cols, float eps) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    x += (size_t)row * cols;
    out += (size_t)row * cols;
    Moments m = {0, 0, 0};
    for (int i = lane; i < cols; i += 32) {
        const float delta = x[i] - m.mean;
        m.count += 1;
        m.mean += delta / m.count;
        m.squares += delta * (x[i] - m.mean);
    }
    for (int far = 16; far > 0; far /= 2)
        m = combine(m, {__shfl_xor_sync(~0u, m.count, far), __shfl_xor_sync(~0u, m.mean, far), __shfl_xor_sync(~0u, m.squares, far)});
    const float scale = rsqrtf(m.squares / cols + eps);
    for (int i = lane; i < cols; i += 32) out[i] = (x[i] - m.mean) * scale * weight[i] + bias[i];
}
