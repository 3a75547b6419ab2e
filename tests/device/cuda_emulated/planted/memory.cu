/* cupilot 1
shared memory is only written by half of the threads
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[64];
    if (threadIdx.x < 32) s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];  // BUG uninitialised-shared
}
/* cupilot 1
a sum begins with whatever shared memory holds
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float sum;
    atomicAdd(&sum, x[threadIdx.x]);
    __syncthreads();
    __shared__ float first[2];
    out[threadIdx.x] = sum + first[threadIdx.x % 2];  // BUG uninitialised-shared
}
/* cupilot 1
the ragged edge of a tile is not filled
launch:
    k[1, (16, 16)](x, out, 13)
*/
extern "C" __global__ void k(const float* x, float* out, int n) {
    __shared__ float tile[16][16];
    if (threadIdx.x < n) tile[threadIdx.y][threadIdx.x] = x[threadIdx.y * n + threadIdx.x];
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 16; ++i)
        sum += tile[threadIdx.y][i];  // BUG uninitialised-shared
    out[threadIdx.y * 16 + threadIdx.x] = sum;
}
/* cupilot 1
shared memory from the launch is read before it is written
launch:
    k[1, 32](x, out, shared=128)
*/
extern "C" __global__ void k(const float* x, float* out) {
    extern __shared__ float s[];
    s[threadIdx.x] += x[threadIdx.x];  // BUG uninitialised-shared
    __syncthreads();
    out[threadIdx.x] = s[31 - threadIdx.x];
}
/* cupilot 1
every element of the tile is filled: nothing is wrong
launch:
    k[1, (16, 16)](x, out, 13)
*/
extern "C" __global__ void k(const float* x, float* out, int n) {
    __shared__ float tile[16][16];
    tile[threadIdx.y][threadIdx.x] = threadIdx.x < n ? x[threadIdx.y * n + threadIdx.x] : 0.0f;
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 16; ++i) sum += tile[threadIdx.y][i];
    out[threadIdx.y * 16 + threadIdx.x] = sum;
}
/* cupilot 1
a local array has a hole
launch:
    k[1, 32](x, out, 7)
*/
extern "C" __global__ void k(const float* x, float* out, int n) {
    float a[8];
    for (int i = 0; i < n; ++i) a[(i * 3) % 8] = x[i];
    float sum = 0;
    for (int i = 0; i < 8; ++i)
        sum += a[(i + threadIdx.x) % 8];  // BUG uninitialised-local
    out[threadIdx.x] = sum;
}
/* cupilot 1
a local array is filled on one path only
launch:
    k[1, 32](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    float a[4];
    if (threadIdx.x % 2)
        for (int i = 0; i < 4; ++i) a[(i + threadIdx.x) % 4] = x[i];
    out[threadIdx.x] = a[threadIdx.x % 4];  // BUG uninitialised-local
}
/* cupilot 1
an assertion fails
launch:
    k[1, 64](x, out)
*/
#include <assert.h>
extern "C" __global__ void k(const float* x, float* out) {
    assert(x[threadIdx.x] > 0 && threadIdx.x < 40);  // BUG assert
    out[threadIdx.x] = x[threadIdx.x];
}
/* cupilot 1
the kernel stops itself
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    if (threadIdx.x == 33 && x[0] == 1.0f) __trap();  // BUG trap
    out[threadIdx.x] = x[threadIdx.x];
}
