// Asynchronous copies and their barriers.
#include "families.h"
namespace emu {
const std::vector<OpEntry> kAsyncOps = {};
}  // namespace emu
