/* cupilot 1
an asynchronous copy is never waited for
launch:
    k[1, 64](x, out)
*/
#include <cuda_pipeline.h>
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[64];
    __pipeline_memcpy_async(&s[threadIdx.x], x + threadIdx.x, 4);
    __pipeline_commit();
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];  // BUG async-in-flight
}
/* cupilot 1
a wait that leaves one group too many in flight
launch:
    k[1, 64](x, out)
*/
#include <cuda_pipeline.h>
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[2][64];
    for (int stage = 0; stage < 2; ++stage) {
        __pipeline_memcpy_async(&s[stage][threadIdx.x], x + 64 * stage + threadIdx.x, 4);
        __pipeline_commit();
    }
    __pipeline_wait_prior(1);
    __syncthreads();
    out[threadIdx.x] = s[0][63 - threadIdx.x];
    out[64 + threadIdx.x] = s[1][63 - threadIdx.x];  // BUG async-in-flight
}
/* cupilot 1
waiting without committing
launch:
    k[1, 64](x, out)
*/
#include <cuda_pipeline.h>
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[64];
    __pipeline_memcpy_async(&s[threadIdx.x], x + threadIdx.x, 4);
    __pipeline_wait_prior(0);
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];  // BUG async-in-flight
}
/* cupilot 1
a wait without a barrier: others' copies may still be under way
launch:
    k[1, 64](x, out)
*/
#include <cuda_pipeline.h>
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[64];
    __pipeline_memcpy_async(&s[threadIdx.x], x + threadIdx.x, 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[threadIdx.x] = s[63 - threadIdx.x];  // BUG race-shared-read | async-in-flight | uninitialised-shared
}
/* cupilot 1
wait, then barrier: nothing is wrong
launch:
    k[1, 64](x, out)
*/
#include <cuda_pipeline.h>
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[64];
    __pipeline_memcpy_async(&s[threadIdx.x], x + threadIdx.x, 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}
/* cupilot 1
a stage is refilled while others still read it
launch:
    k[1, 64](x, out)
*/
#include <cuda_pipeline.h>
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[64];
    float sum = 0;
    for (int step = 0; step < 2; ++step) {
        __pipeline_memcpy_async(&s[threadIdx.x], x + 64 * step + threadIdx.x, 4);  // BUG race-shared-write-after-read
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        sum += s[63 - threadIdx.x];  // BUG async-in-flight | race-shared-read
    }
    out[threadIdx.x] = sum;
}
/* cupilot 1
16 bytes are copied to an address that is no multiple of 16
launch:
    k[1, 8](x, out)
*/
#include <cuda_fp16.h>
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ __align__(16) float s[64];
    unsigned to = (unsigned)__cvta_generic_to_shared(&s[5 * threadIdx.x]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(x + 4 * threadIdx.x));  // BUG async-alignment
    asm volatile("cp.async.wait_all;");
    out[threadIdx.x] = s[5 * threadIdx.x];
}
/* cupilot 1
an asynchronous copy reads past the end
launch:
    k[1, 96](x, out)
*/
#include <cuda_pipeline.h>
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float4 s[96];
    __pipeline_memcpy_async(&s[threadIdx.x], reinterpret_cast<const float4*>(x) + threadIdx.x, 16);  // BUG out-of-bounds
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[threadIdx.x] = s[threadIdx.x].x;
}
/* cupilot 1
an mbarrier is used before it is initialised
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ unsigned long long barrier;
    unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) barrier = 0;
    __syncthreads();
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(at));  // BUG mbarrier
    out[threadIdx.x] = x[threadIdx.x];
}
/* cupilot 1
an mbarrier is initialised without a barrier before its use
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ unsigned long long barrier;
    unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(at));  // BUG race-shared-write | mbarrier
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(at));  // BUG mbarrier | race-shared-write
    out[threadIdx.x] = x[threadIdx.x];
}
/* cupilot 1
an mbarrier orders a warp's writes before another's reads: nothing is wrong
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ unsigned long long barrier;
    __shared__ float s[64];
    unsigned at = (unsigned)__cvta_generic_to_shared(&barrier), done = 0;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(at));
    __syncthreads();
    s[threadIdx.x] = x[threadIdx.x];
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(at) : "memory");
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at) : "memory");
    out[threadIdx.x] = s[63 - threadIdx.x];
}
/* cupilot 1
an mbarrier is waited for in the wrong phase
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ unsigned long long barrier;
    __shared__ float s[64];
    unsigned at = (unsigned)__cvta_generic_to_shared(&barrier), done = 0;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(at));
    __syncthreads();
    s[threadIdx.x] = x[threadIdx.x];
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(at) : "memory");
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 1; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at) : "memory");
    out[threadIdx.x] = s[63 - threadIdx.x];  // BUG race-shared-read | uninitialised-shared | runaway
}
