/* cupilot 1
One thread per output; planes along the grid's second dimension.
launch:
    batch, channels, height, width = x.shape
    pool[(cdiv((height // 2) * (width // 2), 128), batch * channels), 128](x, out, height, width)
*/
extern "C" __global__ void pool(const float* __restrict__ x, float* __restrict__ out, int height, int width) {
    const int high = height / 2, wide = width / 2, i = blockIdx.x * 128 + threadIdx.x;
    if (i >= high * wide) return;
    const float* from = x + (size_t)blockIdx.y * height * width + i / wide * 2 * width + i % wide * 2;
    float top = from[0];
    for (int k = 1; k < 4; ++k) {
        const float v = from[k / 2 * width + k % 2];
        top = v > top || v != v ? v : top;
    }
    out[(size_t)blockIdx.y * high * wide + i] = top;
}
