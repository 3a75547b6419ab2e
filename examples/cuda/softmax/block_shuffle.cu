/* cupilot 1
A block per row: reductions by shuffles inside warps and shared memory between them; the row is kept in shared memory.
tune:
    THREADS = 128 | 256
launch:
    rows, cols = x.shape
    row_softmax[rows, THREADS](x, out, cols, shared=4 * cols)
*/
struct Max {
    static __device__ float identity() { return -INFINITY; }
    static __device__ float of(float a, float b) { return a != a || b != b ? NAN : fmaxf(a, b); }
};
struct Sum {
    static __device__ float identity() { return 0; }
    static __device__ float of(float a, float b) { return a + b; }
};

template <class Op> __device__ float reduce_block(float v, float* partial) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
    for (int far = 16; far > 0; far >>= 1) v = Op::of(v, __shfl_down_sync(0xffffffff, v, far));
    if (lane == 0) partial[warp] = v;
    __syncthreads();
    if (warp == 0) {
        v = lane < THREADS / 32 ? partial[lane] : Op::identity();
#pragma unroll
        for (int far = 16; far > 0; far >>= 1) v = Op::of(v, __shfl_down_sync(0xffffffff, v, far));
        if (lane == 0) partial[0] = v;
    }
    __syncthreads();
    const float result = partial[0];
    __syncthreads();
    return result;
}

extern "C" __global__ void __launch_bounds__(THREADS) row_softmax(const float* __restrict__ x, float* __restrict__ out, int cols) {
    extern __shared__ float kept[];
    __shared__ float partial[32];
    x += (size_t)blockIdx.x * cols;
    out += (size_t)blockIdx.x * cols;
    float top = -INFINITY;
    for (int i = threadIdx.x; i < cols; i += THREADS) top = Max::of(top, kept[i] = x[i]);
    top = reduce_block<Max>(top, partial);
    float sum = 0;
    for (int i = threadIdx.x; i < cols; i += THREADS) sum += kept[i] = expf(kept[i] - top);
    sum = reduce_block<Sum>(sum, partial);
    for (int i = threadIdx.x; i < cols; i += THREADS) out[i] = kept[i] / sum;
}
