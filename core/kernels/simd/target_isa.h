// The instructions this file is being compiled for: the build compiles every kernel of the CPU once for each
// Isa. Everything but the kernels themselves stays inside those copies, so one never runs a function of
// another.
#pragma once

#include "heed/core/isa.h"

namespace heed::kernel {

#ifdef HEED_ISA
constexpr Isa here = Isa::HEED_ISA;
#else
constexpr Isa here = Isa::portable;
#endif

}  // namespace heed::kernel
