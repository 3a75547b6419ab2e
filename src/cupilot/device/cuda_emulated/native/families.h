// The tables of supported operations, one per instruction family.
#pragma once

#include <type_traits>
#include <vector>

#include "machine.h"

namespace emu {

extern const std::vector<OpEntry> kIntegerOps, kFloatOps, kSpecialOps, kConvertOps, kHalfOps, kCompareOps, kControlOps,
    kMemoryOps, kAtomicOps, kWarpOps, kAsyncOps, kMatrixOps, kFragmentOps;

}  // namespace emu
