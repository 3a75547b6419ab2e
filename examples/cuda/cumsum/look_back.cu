/* cupilot 1
Decoupled look-back: each block scans a chunk of a row, publishes its sum, and adds up the sums of those before it.
Chunks are numbered by an atomic counter, so that whoever is waited for has started. Sums are added in a fixed order.
launch:
    rows, cols = x.shape
    chunks = cdiv(cols, 256)
    sums = scratch((rows, chunks), f32)
    ready = scratch((rows, chunks), i32)
    ticket = scratch(1, i32)
    zero(ready)
    zero(ticket)
    scan_chunks[rows * chunks, 256](x, sums, ready, ticket, out, cols, chunks)
*/
extern "C" __global__ void scan_chunks(const float* __restrict__ x, float* sums, int* ready, int* ticket,
                                       float* __restrict__ out, int cols, int chunks) {
    __shared__ float per_warp[8], ahead;
    __shared__ int mine;
    if (threadIdx.x == 0) mine = atomicAdd(ticket, 1);
    __syncthreads();
    const int row = mine / chunks, chunk = mine % chunks, i = chunk * 256 + threadIdx.x;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float v = i < cols ? x[(size_t)row * cols + i] : 0.0f;
    for (int far = 1; far < 32; far *= 2) {
        const float before = __shfl_up_sync(~0u, v, far);
        if (lane >= far) v += before;
    }
    if (lane == 31) per_warp[warp] = v;
    __syncthreads();
    for (int k = 0; k < warp; ++k) v += per_warp[k];
    if (threadIdx.x == 255) {
        sums[mine] = v;
        __threadfence();
        atomicExch(&ready[mine], 1);
    }
    if (threadIdx.x == 0) {
        float sum = 0;
        for (int k = mine - chunk; k < mine; ++k) {
            while (atomicAdd(&ready[k], 0) == 0) __nanosleep(20);
            __threadfence();
            sum += sums[k];
        }
        ahead = sum;
    }
    __syncthreads();
    if (i < cols) out[(size_t)row * cols + i] = ahead + v;
}
