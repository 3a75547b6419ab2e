/* cupilot 1
Blocks share the sum over k; whoever comes last, by an atomic counter, adds the parts up in a fixed order.
tune:
    PARTS = 4 | 2
launch:
    m, k = a.shape
    n = b.shape[1]
    parts = scratch((PARTS, m, n), f32)
    arrived = scratch(cdiv(m, 16) * cdiv(n, 16), i32)
    zero(arrived)
    product[(cdiv(n, 16), cdiv(m, 16), PARTS), (16, 16)](a, b, parts, arrived, out, m, n, k)
*/
extern "C" __global__ void product(const float* __restrict__ a, const float* __restrict__ b, float* parts, int* arrived,
                                   float* __restrict__ out, int m, int n, int k) {
    __shared__ bool last;
    const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    const int each = (k + PARTS - 1) / PARTS, start = blockIdx.z * each, end = min(k, start + each);
    const bool inside = row < m && column < n;
    if (inside) {
        float sum = 0;
        for (int i = start; i < end; ++i) sum += a[row * k + i] * b[i * n + column];
        parts[(blockIdx.z * m + row) * n + column] = sum;
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0)
        last = atomicAdd(&arrived[blockIdx.y * gridDim.x + blockIdx.x], 1) == PARTS - 1;
    __syncthreads();
    if (!last || !inside) return;
    __threadfence();
    float sum = 0;
    for (int part = 0; part < PARTS; ++part) sum += ((volatile float*)parts)[(part * m + row) * n + column];
    out[row * n + column] = sum;
}
