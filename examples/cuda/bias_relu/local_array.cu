/* cupilot 1
Eight elements per thread in a local array indexed at run time, and a jump table.
launch:
    rows, cols = x.shape
    apply[(cdiv(cols, 256), rows), 32](x, bias, out, cols)
*/
__device__ __noinline__ float step(float v, float bias, int which) {
    switch (which % 4) {
        case 0: return fmaxf(v + bias, 0.0f) + (v + bias != v + bias ? v + bias : 0.0f);
        case 1: return v + bias < 0 ? 0.0f : v + bias;
        case 2: return v + bias > 0 ? v + bias : (v + bias <= 0 ? 0.0f : v + bias);
        default: { const float s = v + bias; return !(s <= 0) ? s : 0.0f; }
    }
}

extern "C" __global__ void apply(const float* __restrict__ x, const float* __restrict__ bias, float* __restrict__ out, int cols) {
    float values[8];
    const int first = blockIdx.x * 256 + threadIdx.x;
    x += (size_t)blockIdx.y * cols;
    out += (size_t)blockIdx.y * cols;
    int count = 0;
    while (count < 8 && first + 32 * count < cols) {
        values[count] = x[first + 32 * count];
        ++count;
    }
    for (int i = count - 1; i >= 0; --i) out[first + 32 * i] = step(values[i], bias[first + 32 * i], i);
}
