/* cupilot 1
A block per row: double-buffered scan in shared memory, a carry between chunks.
launch:
    rows, cols = x.shape
    scan_rows[rows, 128](x, out, cols)
*/
extern "C" __global__ void scan_rows(const float* __restrict__ x, float* __restrict__ out, int cols) {
    __shared__ float buffer[2][128];
    x += (size_t)blockIdx.x * cols;
    out += (size_t)blockIdx.x * cols;
    float carry = 0;
    for (int start = 0; start < cols; start += 128) {
        const int i = start + threadIdx.x;
        int now = 0;
        buffer[0][threadIdx.x] = i < cols ? x[i] : 0.0f;
        __syncthreads();
        for (int far = 1; far < 128; far *= 2, now ^= 1) {
            float v = buffer[now][threadIdx.x];
            if (threadIdx.x >= far) v += buffer[now][threadIdx.x - far];
            buffer[now ^ 1][threadIdx.x] = v;
            __syncthreads();
        }
        if (i < cols) out[i] = carry + buffer[now][threadIdx.x];
        carry += buffer[now][127];
        __syncthreads();
    }
}
