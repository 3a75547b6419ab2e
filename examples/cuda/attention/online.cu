/* cupilot 1
A block of 64 threads per query: keys in tiles through shared memory, softmax on the fly, one output column per thread.
launch:
    rows, width = q.shape
    attend[rows, 64](q, k, v, out, k.shape[0], width)
*/
extern "C" __global__ void attend(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
                                  float* __restrict__ out, int keys, int width) {
    constexpr int kTile = 32;
    __shared__ float scores[kTile];
    const int row = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int first = 0; first < width; first += 64) {
        const int column = first + threadIdx.x;
        float top = -INFINITY, sum = 0, weighted = 0;
        for (int start = 0; start < keys; start += kTile) {
            const int count = min(kTile, keys - start);
            for (int j = warp; j < count; j += 2) {
                float score = 0;
                for (int i = lane; i < width; i += 32) score += q[row * width + i] * k[(start + j) * width + i];
                for (int far = 16; far > 0; far /= 2) score += __shfl_xor_sync(~0u, score, far);
                if (lane == 0) scores[j] = score * 0.125f;
            }
            __syncthreads();
            float higher = top;
            for (int j = 0; j < count; ++j) higher = fmaxf(higher, scores[j]);
            const float shrink = top == higher ? 1.0f : expf(top - higher);
            sum *= shrink;
            weighted *= shrink;
            for (int j = 0; j < count; ++j) {
                const float weight = expf(scores[j] - higher);
                sum += weight;
                if (column < width) weighted += weight * v[(start + j) * width + column];
            }
            top = higher;
            __syncthreads();
        }
        if (column < width) out[row * width + column] = weighted / sum;
    }
}
