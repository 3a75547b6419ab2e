/* cupilot 1
One thread per element.
tune:
    THREADS = 128 | 256 | 512
launch:
    n = a.numel
    add[cdiv(n, THREADS), THREADS](a, b, out, n)
*/
extern "C" __global__ void add(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
                               int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}
