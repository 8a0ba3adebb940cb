// Which vector instructions the CPU kernels use.
#pragma once

#include <cstdint>

namespace heed {

/// Sets of instructions that the kernels are compiled for. `portable` is what every 64-bit x86 of the last
/// fifteen years has (x86-64-v2), or what the compiler takes for the machine elsewhere.
enum class Isa : uint8_t { portable, avx2, avx512 };

/// True when this library holds the kernels of every Isa; else they are all `portable`, compiled for the
/// machine at hand.
#if defined(HEED_ALL_ISAS) && HEED_ALL_ISAS
inline constexpr bool all_isas = true;
#else
inline constexpr bool all_isas = false;
#endif

/// The instruction set that the kernels use: the widest of this CPU, or the one that the environment variable
/// HEED_ISA names, where "amx" is avx512 with matrix tiles; an unknown or unsupported name is an error that
/// lists the supported ones, and a library compiled for one machine supports only "native". Sums run in a
/// different order, so results differ in their last bits between instruction sets.
Isa isa();
/// What HEED_ISA calls the instructions in use: the name of isa(), or "amx" where a library of all sets
/// has_amx().
const char* isa_name();

/// "portable", "avx2", "avx512"; "native" where the kernels were compiled for one machine only.
const char* to_string(Isa isa);

/// True when the CPU multiplies bfloat16 numbers in pairs (AVX512-BF16).
bool has_bf16_products();
/// True when the kernels multiply bfloat16 numbers by the matrix tiles of AMX: the CPU has them, the system
/// allows their use, and HEED_ISA names no narrower set.
bool has_amx();

}  // namespace heed
