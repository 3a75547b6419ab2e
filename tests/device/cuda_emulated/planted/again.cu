/* cupilot 1
a barrier number that is computed, and too large
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    const int number = 15 + (int)x[0];
    asm volatile("bar.sync %0;" ::"r"(number));  // BUG barrier-number
    out[threadIdx.x] = x[threadIdx.x];
}
/* cupilot 1
an assertion inside a function
launch:
    k[2, 64](x, out)
*/
#include <cassert>
__device__ __noinline__ int slot_of(float v) {
    assert(v < 0.5f && "small");  // BUG assert
    return (int)v;
}
extern "C" __global__ void k(const float* x, float* out) { out[slot_of(x[threadIdx.x])] = 1; }
/* cupilot 1
a switch stops itself where it has no case
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    switch ((int)x[threadIdx.x] + (threadIdx.x == 40)) {
        case 1: out[threadIdx.x] = 1; break;
        default: asm volatile("trap;");  // BUG trap
    }
}
/* cupilot 1
a lane waits for its warp with a mask without itself
launch:
    k[1, 32](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[32];
    s[threadIdx.x] = x[threadIdx.x];
    __syncwarp(0x7fffffffu);  // BUG not-a-member
    out[threadIdx.x] = s[31 - threadIdx.x];
}
/* cupilot 1
a vote of lanes that are not in its mask
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    if (threadIdx.x % 32 >= 8) out[threadIdx.x] = __any_sync(0xffu, x[threadIdx.x] > 0);  // BUG not-a-member
}
/* cupilot 1
half of a warp multiplies matrices
launch:
    k[1, 32](x, out)
*/
#include <mma.h>
extern "C" __global__ void k(const float* x, float* out) {
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> f;
    nvcuda::wmma::fill_fragment(f, x[0]);
    if (threadIdx.x < 16)
        nvcuda::wmma::store_matrix_sync(out, f, 16, nvcuda::wmma::mem_row_major);  // BUG incomplete-warp | deadlock
}
/* cupilot 1
a pointer that is null at run time
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    const float* p = reinterpret_cast<const float*>((size_t)(x[threadIdx.x] - 1.0f));
    out[threadIdx.x] = p[threadIdx.x];  // BUG wild-address
}
/* cupilot 1
an atomic changes an input
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    out[threadIdx.x] = atomicAdd(const_cast<float*>(x) + threadIdx.x, 1.0f);  // BUG write-to-input
}
/* cupilot 1
a variable of the module remembers
launch:
    k[1, 64](x, out)
*/
__device__ int calls = 0;
extern "C" __global__ void k(const float* x, float* out) {
    if (threadIdx.x == 0) calls += 1;  // BUG write-to-input
    out[threadIdx.x] = x[threadIdx.x];
}
/* cupilot 1
16 bytes are copied asynchronously from the second float on
launch:
    k[1, 32](x, out)
*/
#include <cuda_pipeline.h>
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ __align__(16) float s[128];
    const unsigned to = (unsigned)__cvta_generic_to_shared(s + 4 * threadIdx.x);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(x + 4 * threadIdx.x + 1));  // BUG async-alignment
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncwarp();
    out[threadIdx.x] = s[127 - threadIdx.x];
}
/* cupilot 1
a local array is indexed before its start
launch:
    k[1, 32](x, out, 3)
*/
extern "C" __global__ void k(const float* x, float* out, int back) {
    float a[8];
    for (int i = 0; i < 8; ++i) a[(i * back) % 8] = x[i];
    out[threadIdx.x] = a[(int)threadIdx.x - back];  // BUG out-of-bounds-local
}
/* cupilot 1
a pair of ints at an odd place of shared memory
launch:
    k[1, 32](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ __align__(16) float s[66];
    for (int i = threadIdx.x; i < 66; i += 32) s[i] = x[i];
    __syncwarp();
    const float2 pair = *reinterpret_cast<const float2*>(s + 2 * threadIdx.x + 1);  // BUG misaligned
    out[threadIdx.x] = pair.x + pair.y;
}
/* cupilot 1
a fragment is loaded from a tile that is filled only half
launch:
    k[1, 32](x, out)
*/
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ __align__(32) half tile[256];
    for (int i = threadIdx.x; i < 128; i += 32) tile[i] = __float2half(x[i]);
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::load_matrix_sync(a, tile, 16);  // BUG uninitialised-shared
    out[threadIdx.x] = __half2float(a.x[0]);
}
/* cupilot 1
a fragment is stored and read by other lanes at once
launch:
    k[1, 32](x, out)
*/
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ __align__(32) float tile[256];
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, x[threadIdx.x]);
    wmma::store_matrix_sync(tile, c, 16, wmma::mem_row_major);
    out[threadIdx.x] = tile[255 - threadIdx.x];  // BUG race-shared-read
}
/* cupilot 1
a fragment is stored, the warp waits for itself, then it is read: nothing is wrong
launch:
    k[1, 32](x, out)
*/
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ __align__(32) float tile[256];
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, x[threadIdx.x]);
    wmma::store_matrix_sync(tile, c, 16, wmma::mem_row_major);
    __syncwarp();
    out[threadIdx.x] = tile[255 - threadIdx.x];
}
/* cupilot 1
a counter in shared memory is read while others still add to it
launch:
    k[1, 128](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    if (x[threadIdx.x] > 0) atomicAdd(&count, 1);
    out[threadIdx.x] = count;  // BUG race-shared-read
}
/* cupilot 1
a flag is raised before the data it stands for
launch:
    flag = scratch(1, i32)
    data = scratch(64, f32)
    zero(flag)
    k[2, 64](x, out, data, flag)
*/
extern "C" __global__ void k(const float* x, float* out, float* data, int* flag) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) *(volatile int*)flag = 1;
        __threadfence();
        data[threadIdx.x] = x[threadIdx.x];  // BUG race-global-write-after-read | race-global-write
    } else {
        while (*(volatile int*)flag == 0) __nanosleep(20);
        __threadfence();
        out[threadIdx.x] = data[63 - threadIdx.x];  // BUG race-global-read
    }
}
/* cupilot 1
a flag without a fence before it
launch:
    flag = scratch(1, i32)
    data = scratch(64, f32)
    zero(flag)
    k[2, 64](x, out, data, flag)
*/
extern "C" __global__ void k(const float* x, float* out, float* data, int* flag) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = x[threadIdx.x];  // BUG race-global-write-after-read | race-global-write
        __syncthreads();
        if (threadIdx.x == 0) *(volatile int*)flag = 1;
    } else {
        while (*(volatile int*)flag == 0) __nanosleep(20);
        __threadfence();
        out[threadIdx.x] = data[63 - threadIdx.x];  // BUG race-global-read
    }
}
/* cupilot 1
data, a fence, then a volatile flag: nothing is wrong
launch:
    flag = scratch(1, i32)
    data = scratch(64, f32)
    zero(flag)
    k[2, 64](x, out, data, flag)
*/
extern "C" __global__ void k(const float* x, float* out, float* data, int* flag) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = x[threadIdx.x];
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) *(volatile int*)flag = 1;
    } else {
        if (threadIdx.x == 0)
            while (*(volatile int*)flag == 0) __nanosleep(20);
        __syncthreads();
        __threadfence();
        out[threadIdx.x] = data[63 - threadIdx.x];
    }
}
/* cupilot 1
a chain of blocks, each waits for the one before: nothing is wrong
launch:
    state = scratch(8, i32)
    ticket = scratch(1, i32)
    zero(state)
    zero(ticket)
    k[8, 32](x, out, state, ticket)
*/
#include <cuda/atomic>
extern "C" __global__ void k(const float* x, float* out, int* state, int* ticket) {
    __shared__ int mine, before;
    if (threadIdx.x == 0) mine = atomicAdd(ticket, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        int seen = 1;
        if (mine > 0) {
            cuda::atomic_ref<int, cuda::thread_scope_device> previous(state[mine - 1]);
            while ((seen = previous.load(cuda::memory_order_acquire)) == 0) {}
        }
        before = seen;
        cuda::atomic_ref<int, cuda::thread_scope_device>(state[mine]).store(seen + 1, cuda::memory_order_release);
    }
    __syncthreads();
    if (threadIdx.x < 16) out[mine * 16 + threadIdx.x] = x[threadIdx.x] + before;
}
/* cupilot 1
a cooperative grid goes on without waiting for itself
launch:
    part = scratch(4, f32)
    k[4, 32](x, out, part, cooperative=1)
*/
extern "C" __global__ void k(const float* x, float* out, float* part) {
    if (threadIdx.x == 0) part[blockIdx.x] = x[blockIdx.x];  // BUG race-global-write-after-read | race-global-write
    __syncwarp();
    float sum = 0;
    for (int i = 0; i < 4; ++i) sum += part[i];  // BUG race-global-read
    out[blockIdx.x * 32 + threadIdx.x] = sum;
}
/* cupilot 1
a cooperative grid waits for itself: nothing is wrong
launch:
    part = scratch(4, f32)
    k[4, 32](x, out, part, cooperative=1)
*/
#include <cooperative_groups.h>
extern "C" __global__ void k(const float* x, float* out, float* part) {
    if (threadIdx.x == 0) part[blockIdx.x] = x[blockIdx.x];
    cooperative_groups::this_grid().sync();
    float sum = 0;
    for (int i = 0; i < 4; ++i) sum += part[i];
    out[blockIdx.x * 32 + threadIdx.x] = sum;
}
/* cupilot 1
more arrivals at once than an mbarrier expects
launch:
    k[1, 64](x, out)
*/
#include <cuda/barrier>
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> done;
    if (threadIdx.x == 0) init(&done, 1);
    __syncthreads();
    if (threadIdx.x < 2) {
        auto* word = cuda::device::barrier_native_handle(done);
        const unsigned at = (unsigned)__cvta_generic_to_shared(word);
        asm volatile("{ .reg .b64 t; mbarrier.arrive.noComplete.shared.b64 t, [%0], 2; }" ::"r"(at));  // BUG mbarrier
    }
    out[threadIdx.x] = x[threadIdx.x];
}
/* cupilot 1
a stencil in place, across blocks
launch:
    data = scratch(256, f32)
    fill[1, 256](x, data)
    k[4, 64](data, out)
*/
extern "C" __global__ void fill(const float* x, float* data) { data[threadIdx.x] = x[threadIdx.x] * threadIdx.x; }
extern "C" __global__ void k(float* data, float* out) {
    const int i = blockIdx.x * 64 + threadIdx.x;
    const float sum = data[i] + (i + 1 < 256 ? data[i + 1] : 0);  // BUG race-global-read
    __syncthreads();
    data[i] = sum;  // BUG race-global-write-after-read
    out[i] = sum;
}
/* cupilot 1
blocks write neighbouring bytes of one word: nothing is wrong
launch:
    bytes = scratch(256, i8)
    k[4, 64](x, bytes)
    back[1, 256](bytes, out)
*/
extern "C" __global__ void k(const float* x, signed char* bytes) {
    bytes[threadIdx.x * 4 + blockIdx.x] = (signed char)x[threadIdx.x];
}
extern "C" __global__ void back(const signed char* bytes, float* out) { out[threadIdx.x] = bytes[threadIdx.x]; }
/* cupilot 1
an arrival that must not complete a phase completes it
launch:
    k[1, 32](x, out)
*/
#include <cuda/barrier>
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> done;
    if (threadIdx.x == 0) {
        init(&done, 1);
        const unsigned at = (unsigned)__cvta_generic_to_shared(cuda::device::barrier_native_handle(done));
        asm volatile("{ .reg .b64 t; mbarrier.arrive.noComplete.shared.b64 t, [%0], 1; }" ::"r"(at));  // BUG mbarrier
    }
    out[threadIdx.x] = x[threadIdx.x];
}
/* cupilot 1
blocks wait for neighbours that may begin later
launch:
    flags = scratch(200, i32)
    zero(flags)
    k[200, 32](x, out, flags)
*/
extern "C" __global__ void k(const float* x, float* out, int* flags) {
    const int me = blockIdx.x;
    if (threadIdx.x == 0) {
        if (me > 0)
            while (((volatile int*)flags)[me - 1] == 0) {}  // BUG runaway
        out[me] = x[me];
        ((volatile int*)flags)[me] = 1;
    }
}
/* cupilot 1
an arrival at a barrier that there is not
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    const int number = 31 + (int)x[0];
    if (threadIdx.x < 32) asm volatile("bar.arrive %0, 64;" ::"r"(number));  // BUG barrier-number
    out[threadIdx.x] = x[threadIdx.x];
}
/* cupilot 1
a fence of the block where the device is meant
launch:
    flag = scratch(1, i32)
    data = scratch(64, f32)
    zero(flag)
    k[2, 64](x, out, data, flag)
*/
extern "C" __global__ void k(const float* x, float* out, float* data, int* flag) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = x[threadIdx.x];  // BUG race-global-write-after-read | race-global-write
        asm volatile("fence.acq_rel.cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) *(volatile int*)flag = 1;
    } else {
        if (threadIdx.x == 0)
            while (*(volatile int*)flag == 0) {}
        __syncthreads();
        asm volatile("fence.acq_rel.cta;" ::: "memory");
        out[threadIdx.x] = data[63 - threadIdx.x];  // BUG race-global-read
    }
}
/* cupilot 1
a fence of the device: nothing is wrong
launch:
    flag = scratch(1, i32)
    data = scratch(64, f32)
    zero(flag)
    k[2, 64](x, out, data, flag)
*/
extern "C" __global__ void k(const float* x, float* out, float* data, int* flag) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = x[threadIdx.x];
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) *(volatile int*)flag = 1;
    } else {
        if (threadIdx.x == 0)
            while (*(volatile int*)flag == 0) {}
        __syncthreads();
        asm volatile("fence.sc.sys;" ::: "memory");
        out[threadIdx.x] = data[63 - threadIdx.x];
    }
}
/* cupilot 1
a breakpoint is left behind
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    if (threadIdx.x == 17) asm volatile("brkpt;");  // BUG trap
    out[threadIdx.x] = x[threadIdx.x];
}
