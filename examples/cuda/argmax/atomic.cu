/* cupilot 1
Values and positions packed into 64-bit keys; the largest key wins by an atomic maximum.
launch:
    rows, cols = x.shape
    keys = scratch(rows, i64)
    zero(keys)
    offer[(cdiv(cols, 256), rows), 256](x, keys, cols)
    reveal[cdiv(rows, 128), 128](keys, out, rows)
*/
extern "C" __global__ void offer(const float* __restrict__ x, long long* keys, int cols) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= cols) return;
    const float v = x[(size_t)blockIdx.y * cols + i];
    const unsigned bits = __float_as_uint(v == 0 ? 0.0f : v);
    const unsigned order = v != v ? 0xffffffffu : bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    const unsigned long long key = (unsigned long long)order << 32 | (0xffffffffu - (unsigned)i);
    atomicMax(reinterpret_cast<unsigned long long*>(keys) + blockIdx.y, key);
}
extern "C" __global__ void reveal(const long long* keys, long long* out, int rows) {
    const int row = blockIdx.x * 128 + threadIdx.x;
    if (row < rows) out[row] = 0xffffffffu - (unsigned)keys[row];
}
