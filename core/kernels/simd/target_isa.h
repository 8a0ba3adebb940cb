// The instructions this file is being compiled for: the build compiles every kernel of the CPU once for each
// Isa. Everything but the kernels themselves stays inside those copies, so one never runs a function of
// another.
#pragma once

#include "heed/core/isa.h"

namespace heed::kernel {

#ifdef HEED_ISA
constexpr Isa target_isa = Isa::HEED_ISA;
#else
constexpr Isa target_isa = Isa::portable;
#endif

}  // namespace heed::kernel
