/* cupilot 1
One warp brings pieces of a row into shared memory, another multiplies them: they take turns by named barriers.
launch:
    rows, cols = a.shape
    multiply[rows, 64](a, x, out, cols)
*/
__device__ void meet(int barrier) { asm volatile("bar.sync %0, 64;" ::"r"(barrier) : "memory"); }
__device__ void announce(int barrier) { asm volatile("bar.arrive %0, 64;" ::"r"(barrier) : "memory"); }

extern "C" __global__ void multiply(const float* __restrict__ a, const float* __restrict__ x, float* __restrict__ out, int cols) {
    constexpr int kPiece = 128;
    __shared__ float row[2][kPiece];
    const int lane = threadIdx.x % 32;
    a += (size_t)blockIdx.x * cols;
    if (threadIdx.x < 32) {
        for (int start = 0, turn = 0; start < cols; start += kPiece, turn ^= 1) {
            if (start >= 2 * kPiece) meet(3 + turn);  // until it has been read
            for (int i = lane; i < kPiece; i += 32) row[turn][i] = start + i < cols ? a[start + i] : 0.0f;
            announce(1 + turn);
        }
    } else {
        float sum = 0;
        for (int start = 0, turn = 0; start < cols; start += kPiece, turn ^= 1) {
            meet(1 + turn);
            for (int i = lane; i < kPiece && start + i < cols; i += 32) sum += row[turn][i] * x[start + i];
            if (start + 2 * kPiece < cols) announce(3 + turn);
        }
        for (int far = 16; far > 0; far /= 2) sum += __shfl_xor_sync(~0u, sum, far);
        if (lane == 0) out[blockIdx.x] = sum;
    }
}
