/* cupilot 1
reads one element past the end
launch:
    k[2, 128](x, out, 256)
*/
extern "C" __global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = x[i + 1];  // BUG out-of-bounds
}
/* cupilot 1
writes past the end in the last block
launch:
    k[3, 100](x, out, 256)
*/
extern "C" __global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? x[i] : 0.0f;
    out[i] = v;  // BUG out-of-bounds
}
/* cupilot 1
reads before the beginning
launch:
    k[2, 128](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = x[i - 1];  // BUG out-of-bounds
}
/* cupilot 1
a vector sticks out of the end
launch:
    k[1, 64](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    float4 v = reinterpret_cast<const float4*>(x)[threadIdx.x + 1];  // BUG out-of-bounds
    out[threadIdx.x] = v.x + v.w;
}
/* cupilot 1
a comparison with <= instead of <
launch:
    k[2, 256](x, out, 256)
*/
extern "C" __global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) out[i] = 1.0f;  // BUG out-of-bounds
}
/* cupilot 1
a row too many of a matrix of 16 x 16
launch:
    k[(1, 2), (16, 16)](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    int row = blockIdx.y * 15 + threadIdx.y;
    out[threadIdx.y * 16 + threadIdx.x] =
        x[row * 16 + threadIdx.x];  // BUG out-of-bounds
}
/* cupilot 1
an atomic beyond the end
launch:
    k[1, 32](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    out[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&out[threadIdx.x * 10], x[threadIdx.x]);  // BUG out-of-bounds
}
/* cupilot 1
the index is clamped: nothing is wrong
launch:
    k[3, 100](x, out, 256)
*/
extern "C" __global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[min(i + 1, n - 1)];
}
/* cupilot 1
a negative index as unsigned
launch:
    k[1, 32](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    unsigned i = threadIdx.x - 1;
    out[threadIdx.x] = x[i];  // BUG out-of-bounds
}
/* cupilot 1
a pointer that never was one
launch:
    k[1, 32](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    const float* p = reinterpret_cast<const float*>(0x1234560ull);
    out[threadIdx.x] = p[threadIdx.x];  // BUG wild-address
}
/* cupilot 1
writes to its input through a cast
launch:
    k[1, 32](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    out[threadIdx.x] = x[threadIdx.x];
    const_cast<float*>(x)[threadIdx.x] = 0;  // BUG write-to-input
}
/* cupilot 1
an array in shared memory is one too short
launch:
    k[1, 128](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[127];
    s[threadIdx.x] = x[threadIdx.x];  // BUG out-of-bounds-shared
    __syncthreads();
    out[threadIdx.x] = s[0];
}
/* cupilot 1
less dynamic shared memory than the kernel uses
launch:
    k[1, 128](x, out, shared=256)
*/
extern "C" __global__ void k(const float* x, float* out) {
    extern __shared__ float s[];
    s[threadIdx.x] = x[threadIdx.x];  // BUG out-of-bounds-shared
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}
/* cupilot 1
a local array is indexed past its end
launch:
    k[1, 32](x, out, 8)
*/
extern "C" __global__ void k(const float* x, float* out, int n) {
    float a[8];
    for (int i = 0; i < 8; ++i) a[i] = x[i + threadIdx.x];
    float sum = 0;
    for (int i = 0; i <= n; ++i)
        sum += a[(i * 5 + 8) % 16];  // BUG out-of-bounds-local
    out[threadIdx.x] = sum;
}
/* cupilot 1
a vector load at an odd element
launch:
    k[1, 32](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    float2 v = *reinterpret_cast<const float2*>(x + 2 * threadIdx.x + 1);  // BUG misaligned
    out[threadIdx.x] = v.x + v.y;
}
/* cupilot 1
rows of 15 elements read as float4
launch:
    k[1, 16](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    float4 v = *reinterpret_cast<const float4*>(x + 15 * threadIdx.x);  // BUG misaligned
    out[threadIdx.x] = v.x + v.y + v.z + v.w;
}
/* cupilot 1
a vector store into padded shared memory
launch:
    k[1, 32](x, out)
*/
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ float s[32][5];
    *reinterpret_cast<float4*>(&s[threadIdx.x][0]) = *reinterpret_cast<const float4*>(x + 4 * threadIdx.x);  // BUG misaligned
    __syncwarp();
    out[threadIdx.x] = s[31 - threadIdx.x][0];
}
