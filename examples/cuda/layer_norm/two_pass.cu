/* cupilot 1
A block per row; mean, then the squared distances, then the result.
tune:
    THREADS = 128 | 256
launch:
    rows, cols = x.shape
    normalise[rows, THREADS](x, norm_weight, norm_bias, out, cols, 1e-5)
*/
__device__ float add_block(float v, float* partial) {
    partial[threadIdx.x] = v;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    v = partial[0];
    __syncthreads();
    return v;
}

extern "C" __global__ void normalise(const float* __restrict__ x, const float* __restrict__ weight,
                                     const float* __restrict__ bias, float* __restrict__ out, int cols, float eps) {
    __shared__ float partial[THREADS];
    x += (size_t)blockIdx.x * cols;
    out += (size_t)blockIdx.x * cols;
    float sum = 0;
    for (int i = threadIdx.x; i < cols; i += THREADS) sum += x[i];
    const float mean = add_block(sum, partial) / cols;
    float squares = 0;
    for (int i = threadIdx.x; i < cols; i += THREADS) squares += (x[i] - mean) * (x[i] - mean);
    const float scale = rsqrtf(add_block(squares, partial) / cols + eps);
    for (int i = threadIdx.x; i < cols; i += THREADS) out[i] = (x[i] - mean) * scale * weight[i] + bias[i];
}
