// The instruction set that this file is being compiled for: the build compiles every kernel of the CPU once
// for each Isa, and keeps all other symbols of each copy local, so that no copy calls a function of another.
#pragma once

#include "heed/core/isa.h"

namespace heed::kernel {

#ifdef HEED_ISA
constexpr Isa target_isa = Isa::HEED_ISA;
#else
constexpr Isa target_isa = Isa::portable;
#endif

}  // namespace heed::kernel
