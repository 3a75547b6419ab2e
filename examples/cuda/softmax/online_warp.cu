/* cupilot 1
A warp per row: maximum and sum in one pass, rescaled as the maximum grows, combined by shuffles.
tune:
    WARPS = 4 | 8
launch:
    rows, cols = x.shape
    row_softmax[cdiv(rows, WARPS), 32 * WARPS](x, out, rows, cols)
*/
extern "C" __global__ void row_softmax(const float* __restrict__ x, float* __restrict__ out, int rows, int cols) {
    const int row = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    x += (size_t)row * cols;
    out += (size_t)row * cols;
    float top = -INFINITY, sum = 0;
    for (int i = lane; i < cols; i += 32) {
        const float v = x[i], higher = fmaxf(top, v);
        if (higher > top) sum *= expf(top - higher);
        top = higher;
        sum += top == -INFINITY ? 0.0f : expf(v - top);
        if (v != v) sum = v;
    }
#pragma unroll
    for (int far = 16; far > 0; far /= 2) {
        const float other_top = __shfl_xor_sync(~0u, top, far), other_sum = __shfl_xor_sync(~0u, sum, far);
        const float higher = fmaxf(top, other_top);
        const float mine = top == -INFINITY ? (sum != sum ? sum : 0.0f) : sum * expf(top - higher);
        const float theirs = other_top == -INFINITY ? (other_sum != other_sum ? other_sum : 0.0f) : other_sum * expf(other_top - higher);
        sum = mine + theirs;
        top = higher;
    }
    const float scale = 1 / sum;
    for (int i = lane; i < cols; i += 32) out[i] = expf(x[i] - top) * scale;
}
