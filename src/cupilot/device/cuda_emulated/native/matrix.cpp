// Matrix fragments.
#include "families.h"
namespace emu {
const std::vector<OpEntry> kMatrixOps = {};
}  // namespace emu
