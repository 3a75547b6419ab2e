/* cupilot 1
A block per row; 16-byte accesses where rows allow it.
launch:
    rows, cols = x.shape
    normalise[rows, 128](x, out, cols, self.eps)
*/
extern "C" __global__ void normalise(const float* __restrict__ x, float* __restrict__ out, int cols, float eps) {
    __shared__ float per_warp[4];
    x += (size_t)blockIdx.x * cols;
    out += (size_t)blockIdx.x * cols;
    const int quads = cols % 4 == 0 ? cols / 4 : 0;
    float sum = 0;
    for (int i = threadIdx.x; i < quads; i += 128) {
        const float4 v = reinterpret_cast<const float4*>(x)[i];
        sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    for (int i = 4 * quads + threadIdx.x; i < cols; i += 128) sum += x[i] * x[i];
    for (int far = 16; far > 0; far /= 2) sum += __shfl_xor_sync(~0u, sum, far);
    if (threadIdx.x % 32 == 0) per_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    const float scale = rsqrtf((per_warp[0] + per_warp[1] + per_warp[2] + per_warp[3]) / cols + eps);
    for (int i = threadIdx.x; i < quads; i += 128) {
        float4 v = reinterpret_cast<const float4*>(x)[i];
        v.x *= scale, v.y *= scale, v.z *= scale, v.w *= scale;
        reinterpret_cast<float4*>(out)[i] = v;
    }
    for (int i = 4 * quads + threadIdx.x; i < cols; i += 128) out[i] = x[i] * scale;
}
