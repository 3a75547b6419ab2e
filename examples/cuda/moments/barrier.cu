/* cupilot 1
A block per row: asynchronous copies that a barrier in shared memory waits for; two outputs.
launch:
    rows, cols = x.shape
    moments[rows, 128](x, out0, out1, cols, shared=4 * cols)
*/
#include <cuda/barrier>

__device__ float add_block(float v, float* per_warp) {
    for (int far = 16; far > 0; far /= 2) v += __shfl_xor_sync(~0u, v, far);
    if (threadIdx.x % 32 == 0) per_warp[threadIdx.x / 32] = v;
    __syncthreads();
    v = per_warp[0] + per_warp[1] + per_warp[2] + per_warp[3];
    __syncthreads();
    return v;
}

extern "C" __global__ void moments(const float* __restrict__ x, float* __restrict__ variance, float* __restrict__ mean_out, int cols) {
    extern __shared__ float row[];
    __shared__ float per_warp[4];
    __shared__ cuda::barrier<cuda::thread_scope_block> arrived;
    if (threadIdx.x == 0) init(&arrived, 128);
    __syncthreads();
    for (int i = threadIdx.x; i < cols; i += 128) cuda::memcpy_async(row + i, x + (size_t)blockIdx.x * cols + i, sizeof(float), arrived);
    arrived.arrive_and_wait();
    float sum = 0;
    for (int i = 0; i < cols; i += 128) sum += i + threadIdx.x < cols ? row[cols - 1 - i - threadIdx.x] : 0.0f;
    const float mean = add_block(sum, per_warp) / cols;
    float squares = 0;
    for (int i = threadIdx.x; i < cols; i += 128) squares += (row[i] - mean) * (row[i] - mean);
    squares = add_block(squares, per_warp);
    if (threadIdx.x == 0) {
        variance[blockIdx.x] = squares / cols;
        mean_out[blockIdx.x] = mean;
    }
}
