/* cupilot 1
a barrier in a branch that only half of a warp takes
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    if (threadIdx.x % 2 == 0) {
        __syncthreads();  // BUG deadlock | divergent-barrier
        s[threadIdx.x] = 0;
    } else {
        __syncthreads();  // BUG deadlock | divergent-barrier
    }
    out[threadIdx.x] = s[threadIdx.x];
}
/* cupilot 1
warps wait at different barriers
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    if (threadIdx.x < 32) {
        __syncthreads();  // BUG divergent-barrier
        out[threadIdx.x] = s[threadIdx.x + 32];
    } else {
        __syncthreads();  // BUG divergent-barrier
        out[threadIdx.x] = 1;
    }
}
/* cupilot 1
a loop with a barrier that warps leave at different times
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[64];
    for (int i = 0; i < 1 + threadIdx.x / 32; ++i) {
        s[threadIdx.x] = x[threadIdx.x] + i;
        __syncthreads();  // BUG divergent-barrier | deadlock
    }
    __syncthreads();  // BUG divergent-barrier | deadlock
    out[threadIdx.x] = s[63 - threadIdx.x];
}
/* cupilot 1
threads that leave early do not hold up a barrier: nothing is wrong
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[64];
    if (threadIdx.x >= 32) return;
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[31 - threadIdx.x];
}
/* cupilot 1
a named barrier for more threads than come
launch:
    k[1, 96](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    if (threadIdx.x < 64) asm volatile("bar.sync 1, 96;");  // BUG deadlock
    out[threadIdx.x] = x[threadIdx.x];
}
/* cupilot 1
a named barrier with different counts
launch:
    k[1, 96](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    if (threadIdx.x < 32) {
        asm volatile("bar.sync 1, 96;");  // BUG barrier-count | deadlock
    } else {
        asm volatile("bar.sync 1, 64;");  // BUG barrier-count | deadlock
    }
    out[threadIdx.x] = x[threadIdx.x];
}
/* cupilot 1
a barrier for a count that is no multiple of 32
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    int count = 32 + (int)x[0];
    asm volatile("bar.sync 2, %0;" ::"r"(count));  // BUG barrier-count
    out[threadIdx.x] = x[threadIdx.x];
}
/* cupilot 1
producer and consumer over named barriers: nothing is wrong
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[32];
    if (threadIdx.x < 32) {
        s[threadIdx.x] = x[threadIdx.x];
        asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[threadIdx.x] = s[63 - threadIdx.x];
    }
}
/* cupilot 1
producer and consumer over different barriers
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[32];
    if (threadIdx.x < 32) {
        s[threadIdx.x] = x[threadIdx.x];
        asm volatile("bar.arrive 2, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");  // BUG deadlock
        out[threadIdx.x] = s[63 - threadIdx.x];
    }
}
/* cupilot 1
a shuffle in a branch with the mask of all lanes
launch:
    k[1, 32](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    float v = x[threadIdx.x];
    if (threadIdx.x < 16) {
        v += __shfl_down_sync(0xffffffffu, v, 1);  // BUG deadlock
    } else {
        v += __shfl_up_sync(0xffffffffu, v, 1);  // BUG deadlock
    }
    out[threadIdx.x] = v;
}
/* cupilot 1
a lane takes part in a shuffle whose mask does not name it
launch:
    k[1, 32](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    out[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, x[threadIdx.x], 1);  // BUG not-a-member
}
/* cupilot 1
a block waits for one that has not come
launch:
    flag = scratch(1, i32)
    zero(flag)
    k[2, 32](x, flag, out)
*/
extern "C" __global__ void k(const float* x, int* flag, float* out) {
    if (threadIdx.x == 0)
        while (atomicAdd(flag, 0) == 0) {  // BUG runaway
        }
    out[threadIdx.x] = x[threadIdx.x];
}
/* cupilot 1
a loop that never ends
launch:
    k[1, 32](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    float v = x[threadIdx.x];
    while (v > 0.5f) v = v * 0.5f + 0.5f;  // BUG runaway
    out[threadIdx.x] = v;
}
/* cupilot 1
a lock that lanes of one warp take in turn, with the release outside the loop
launch:
    lock = scratch(1, i32)
    zero(lock)
    k[1, 32](x, lock, out)
*/
extern "C" __global__ void k(const float* x, int* lock, float* out) {
    while (atomicCAS(lock, 0, 1 + threadIdx.x) != 1 + threadIdx.x) {  // BUG runaway
    }
    out[threadIdx.x] = x[threadIdx.x];
    __syncwarp();
    atomicExch(lock, 0);
}
/* cupilot 1
a warp with 20 threads multiplies matrices
launch:
    k[1, 20](x, out)
*/
#include <mma.h>
extern "C" __global__ void k(const float* x, float* out) {
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> f;
    nvcuda::wmma::fill_fragment(f, x[0]);
    nvcuda::wmma::store_matrix_sync(out, f, 16, nvcuda::wmma::mem_row_major);  // BUG incomplete-warp
}
