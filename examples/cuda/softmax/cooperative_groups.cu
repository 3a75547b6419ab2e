/* cupilot 1
A tile of 32 threads per row, written with cooperative groups.
launch:
    rows, cols = x.shape
    row_softmax[cdiv(rows, 4), 128](x, out, rows, cols)
*/
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void row_softmax(const float* __restrict__ x, float* __restrict__ out, int rows, int cols) {
    const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    const int row = blockIdx.x * tile.meta_group_size() + tile.meta_group_rank();
    if (row >= rows) return;
    x += (size_t)row * cols;
    out += (size_t)row * cols;
    float top = -INFINITY;
    for (int i = tile.thread_rank(); i < cols; i += tile.size()) top = fmaxf(top, x[i]);
    top = cg::reduce(tile, top, [](float a, float b) { return fmaxf(a, b); });
    float sum = 0;
    for (int i = tile.thread_rank(); i < cols; i += tile.size()) sum += expf(x[i] - top);
    sum = cg::reduce(tile, sum, cg::plus<float>());
    for (int i = tile.thread_rank(); i < cols; i += tile.size()) out[i] = expf(x[i] - top) / sum;
}
