/* cupilot 1
no barrier between writing and reading shared memory
launch:
    k[1, 128](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[128];
    s[threadIdx.x] = x[threadIdx.x];
    out[threadIdx.x] = s[127 - threadIdx.x];  // BUG race-shared-read | uninitialised-shared
}
/* cupilot 1
with the barrier nothing is wrong
launch:
    k[1, 128](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[128];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[127 - threadIdx.x];
}
/* cupilot 1
no barrier at the end of a loop over tiles
launch:
    k[1, 128](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[128];
    float sum = 0;
    for (int start = 0; start < 256; start += 128) {
        s[threadIdx.x] = x[start + threadIdx.x];  // BUG race-shared-write-after-read | race-shared-write
        __syncthreads();
        sum += s[127 - threadIdx.x];  // BUG race-shared-read
    }
    out[threadIdx.x] = sum;
}
/* cupilot 1
a barrier at both ends of the loop: nothing is wrong
launch:
    k[1, 128](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[128];
    float sum = 0;
    for (int start = 0; start < 256; start += 128) {
        s[threadIdx.x] = x[start + threadIdx.x];
        __syncthreads();
        sum += s[127 - threadIdx.x];
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}
/* cupilot 1
a tree without barriers between its steps
launch:
    k[1, 128](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[128];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (int half = 64; half > 0; half /= 2)
        if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];  // BUG race-shared-read | race-shared-write | race-shared-write-after-read
    if (threadIdx.x == 0) out[0] = s[0];
}
/* cupilot 1
the last warp of a tree without __syncwarp
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 32) {
        s[threadIdx.x] += s[threadIdx.x + 32];
        s[threadIdx.x] += s[threadIdx.x + 16];  // BUG race-shared-read | race-shared-write | race-shared-write-after-read
    }
    if (threadIdx.x == 0) out[0] = s[0];
}
/* cupilot 1
the last warp of a tree with __syncwarp: nothing is wrong
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 32) {
        float v = s[threadIdx.x] + s[threadIdx.x + 32];
        for (int half = 16; half > 0; half /= 2) {
            s[threadIdx.x] = v;
            __syncwarp();
            v += s[threadIdx.x ^ half];
            __syncwarp();
        }
        if (threadIdx.x == 0) out[0] = v;
    }
}
/* cupilot 1
two threads write the same place
launch:
    k[1, 128](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[64];
    s[threadIdx.x / 2] = threadIdx.x;  // BUG race-shared-write
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x / 2];
}
/* cupilot 1
all threads write the same value: nothing is wrong
launch:
    k[1, 128](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ int any;
    if (threadIdx.x == 0) any = 0;
    __syncthreads();
    if (x[threadIdx.x] > 0) any = 1;
    __syncthreads();
    out[threadIdx.x] = any;
}
/* cupilot 1
a histogram in shared memory without atomics
launch:
    k[1, 128](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ int bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    bins[threadIdx.x % 16] += 1;  // BUG race-shared-read | race-shared-write | race-shared-write-after-read
    __syncthreads();
    out[threadIdx.x] = bins[threadIdx.x % 16];
}
/* cupilot 1
a histogram in shared memory with atomics: nothing is wrong
launch:
    k[1, 128](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ int bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[threadIdx.x % 16], 1);
    __syncthreads();
    out[threadIdx.x] = bins[threadIdx.x % 16];
}
/* cupilot 1
the broadcast of a sum is overwritten while others read it
launch:
    k[1, 64](x, out)
*/
__device__ float add_block(float v, float* s) {
    for (int far = 16; far > 0; far /= 2) v += __shfl_xor_sync(~0u, v, far);
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
    __syncthreads();
    return s[0] + s[1];
}
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[2];
    float a = add_block(x[threadIdx.x], s);
    out[threadIdx.x] = add_block(a * x[threadIdx.x], s);  // BUG race-shared-write-after-read | race-shared-write | race-shared-read
}
/* cupilot 1
bytes of one word: neighbours that never meet are no race
launch:
    k[1, 128](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ unsigned char s[128];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[threadIdx.x];
}
/* cupilot 1
blocks add to one element without atomics
launch:
    zero(out)
    k[8, 32](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    if (threadIdx.x == 0) out[0] += blockIdx.x;  // BUG race-global-read | race-global-write | race-global-write-after-read
}
/* cupilot 1
blocks add to one element with atomics: nothing is wrong
launch:
    zero(out)
    k[8, 32](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    if (threadIdx.x == 0) atomicAdd(out, 1.0f);
}
/* cupilot 1
overlapping pieces of the output
launch:
    k[4, 65](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    int i = blockIdx.x * 60 + threadIdx.x;
    if (i < 256) out[i] = blockIdx.x;  // BUG race-global-write
}
/* cupilot 1
a block reads what another one writes in the same launch
launch:
    k[4, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    int i = blockIdx.x * 64 + threadIdx.x;
    out[i] = x[i];  // BUG race-global-write-after-read | race-global-write
    if (i > 0) out[i] += out[(i + 64) % 256];  // BUG race-global-read | race-global-write-after-read | race-global-write
}
/* cupilot 1
the last block reads parts that were never published
launch:
    parts = scratch(8, f32)
    count = scratch(1, i32)
    zero(count)
    k[8, 32](x, parts, count, out)
*/
extern "C" __global__ void k(const float* x, float* parts, int* count, float* out) {
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = x[blockIdx.x];
        if (atomicAdd(count, 1) == 7) {
            float sum = 0;
            for (int i = 0; i < 8; ++i)
                sum += parts[i];  // BUG race-global-read
            out[0] = sum;
        }
    }
}
/* cupilot 1
the last block reads parts after a fence: nothing is wrong
launch:
    parts = scratch(8, f32)
    count = scratch(1, i32)
    zero(count)
    k[8, 32](x, parts, count, out)
*/
extern "C" __global__ void k(const float* x, float* parts, int* count, float* out) {
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = x[blockIdx.x];
        __threadfence();
        if (atomicAdd(count, 1) == 7) {
            __threadfence();
            float sum = 0;
            for (int i = 0; i < 8; ++i) sum += parts[i];
            out[0] = sum;
        }
    }
}
/* cupilot 1
scratch carried between blocks in one launch
launch:
    s = scratch(256, f32)
    k[2, 128](x, s, out)
*/
extern "C" __global__ void k(const float* x, float* s, float* out) {
    int i = blockIdx.x * 128 + threadIdx.x;
    s[i] = x[i];  // BUG race-global-write
    __syncthreads();
    out[i] = s[255 - i];  // BUG race-global-read
    s[255 - i] = 2;  // BUG race-global-write-after-read | race-global-write
}
/* cupilot 1
a second launch orders the blocks: nothing is wrong
launch:
    s = scratch(256, f32)
    first[2, 128](x, s)
    second[2, 128](s, out)
*/
extern "C" __global__ void first(const float* x, float* s) { s[blockIdx.x * 128 + threadIdx.x] = x[blockIdx.x * 128 + threadIdx.x]; }
extern "C" __global__ void second(const float* s, float* out) {
    int i = blockIdx.x * 128 + threadIdx.x;
    out[i] = s[255 - i];
}
