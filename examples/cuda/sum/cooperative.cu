/* cupilot 1
A cooperative grid: all blocks wait for each other between the two steps.
launch:
    parts = scratch(24, f32)
    add_up[24, 256](x, parts, out, x.numel, cooperative=1)
*/
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void add_up(const float* __restrict__ x, float* parts, float* out, int n) {
    __shared__ float per_warp[8];
    const cg::grid_group grid = cg::this_grid();
    const cg::thread_block block = cg::this_thread_block();
    const auto warp = cg::tiled_partition<32>(block);
    float sum = 0;
    for (int i = grid.thread_rank(); i < n; i += grid.size()) sum += x[i];
    for (int far = 16; far > 0; far /= 2) sum += warp.shfl_down(sum, far);
    if (warp.thread_rank() == 0) per_warp[warp.meta_group_rank()] = sum;
    block.sync();
    if (block.thread_rank() == 0) {
        sum = 0;
        for (int i = 0; i < 8; ++i) sum += per_warp[i];
        parts[blockIdx.x] = sum;
    }
    grid.sync();
    if (grid.thread_rank() == 0) {
        sum = 0;
        for (int i = 0; i < gridDim.x; ++i) sum += parts[i];
        *out = sum;
    }
}
