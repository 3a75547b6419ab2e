/* cupilot 1
A block per row: maximum and sum by trees in shared memory, three passes over the row.
tune:
    THREADS = 128 | 256
launch:
    rows, cols = x.shape
    row_softmax[rows, THREADS](x, out, cols)
*/
#include <cfloat>

extern "C" __global__ void row_softmax(const float* __restrict__ x, float* __restrict__ out, int cols) {
    __shared__ float partial[THREADS];
    x += (long long)blockIdx.x * cols;
    out += (long long)blockIdx.x * cols;
    float largest = -FLT_MAX;
    for (int i = threadIdx.x; i < cols; i += THREADS) largest = fmaxf(largest, x[i]);
    partial[threadIdx.x] = largest;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] = fmaxf(partial[threadIdx.x], partial[threadIdx.x + half]);
        __syncthreads();
    }
    largest = partial[0];
    __syncthreads();
    float sum = 0;
    for (int i = threadIdx.x; i < cols; i += THREADS) sum += expf(x[i] - largest);
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    sum = partial[0];
    for (int i = threadIdx.x; i < cols; i += THREADS) out[i] = expf(x[i] - largest) / sum;
}
