// Chooses the instruction set of the kernels once, from those of the CPU.
#include "heed/core/isa.h"

#include <array>
#include <cstdlib>
#include <iterator>
#include <string>

#include "heed/core/error.h"
#include "heed/core/startup_cpu_check.h"

namespace heed {

namespace {

struct InstructionSet {
  const char* name;
  const char* expansion;  ///< text of a macro that compilers define as 1 where they may use the set
};
#define HEED_TEXT(macro) #macro
#define HEED_INSTRUCTION_SET(name, macro) \
  InstructionSet { name, HEED_TEXT(macro) }
constexpr InstructionSet instruction_sets[] = {
    HEED_INSTRUCTION_SET("ssse3", __SSSE3__),
    HEED_INSTRUCTION_SET("sse4.1", __SSE4_1__),
    HEED_INSTRUCTION_SET("sse4.2", __SSE4_2__),
    HEED_INSTRUCTION_SET("popcnt", __POPCNT__),
    HEED_INSTRUCTION_SET("avx", __AVX__),
    HEED_INSTRUCTION_SET("avx2", __AVX2__),
    HEED_INSTRUCTION_SET("fma", __FMA__),
    HEED_INSTRUCTION_SET("bmi", __BMI__),
    HEED_INSTRUCTION_SET("bmi2", __BMI2__),
    HEED_INSTRUCTION_SET("fma4", __FMA4__),
    HEED_INSTRUCTION_SET("xop", __XOP__),
    HEED_INSTRUCTION_SET("avx512f", __AVX512F__),
    HEED_INSTRUCTION_SET("avx512cd", __AVX512CD__),
    HEED_INSTRUCTION_SET("avx512bw", __AVX512BW__),
    HEED_INSTRUCTION_SET("avx512dq", __AVX512DQ__),
    HEED_INSTRUCTION_SET("avx512vl", __AVX512VL__),
    HEED_INSTRUCTION_SET("avx512ifma", __AVX512IFMA__),
    HEED_INSTRUCTION_SET("avx512vbmi", __AVX512VBMI__),
    HEED_INSTRUCTION_SET("avx512vbmi2", __AVX512VBMI2__),
    HEED_INSTRUCTION_SET("avx512vpopcntdq", __AVX512VPOPCNTDQ__),
    HEED_INSTRUCTION_SET("avx512bitalg", __AVX512BITALG__),
    HEED_INSTRUCTION_SET("avx512vnni", __AVX512VNNI__),
    HEED_INSTRUCTION_SET("avx512bf16", __AVX512BF16__),
};
#undef HEED_INSTRUCTION_SET
#undef HEED_TEXT

/// Names of the sets that the compiler may have used, then nulls.
constexpr auto enabled_sets = [] {
  std::array<const char*, std::size(instruction_sets) + 1> names{};
  size_t count = 0;
  for (const InstructionSet& set : instruction_sets) {
    if (set.expansion[0] == '1') names[count++] = set.name;
  }
  return names;
}();

}  // namespace

const char* const* const needed_instructions = enabled_sets.data();

namespace {

/// Whether this CPU runs the kernels of `wanted`.
bool is_supported(Isa wanted) {
  if (wanted == Isa::portable) return true;
#if defined(__x86_64__)
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (wanted == Isa::avx2) return has_avx2;
  return has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

/// The instruction set that HEED_ISA names, or the widest of this CPU.
Isa choose() {
  const char* requested = std::getenv("HEED_ISA");
  if constexpr (!all_isas) {
    if (const char* name = missing_instruction(needed_instructions))
      fail(Fault::device, "heed was compiled for another CPU: it uses ", name, ", which this one lacks.");
    if (requested != nullptr && *requested != '\0' && requested != std::string("native")) {
      fail("HEED_ISA=", requested,
           ", but this build has only the instructions of the CPU it was compiled on. Unset ",
           "HEED_ISA, or build with -DHEED_NATIVE=OFF.");
    }
    return Isa::portable;
  }
  constexpr std::array known{Isa::avx512, Isa::avx2, Isa::portable};
  std::string supported;
  for (const Isa candidate : known) {
    if (!is_supported(candidate)) continue;
    const std::string name = to_string(candidate);
    if (requested == nullptr || *requested == '\0' || name == requested) return candidate;
    supported += (supported.empty() ? "" : ", ") + name;
  }
  fail("HEED_ISA=", requested, " is not a set of instructions of this CPU. It has: ", supported,
       ". Unset it to use the widest.");
}

}  // namespace

Isa isa() {
  static const Isa chosen = choose();
  return chosen;
}

const char* to_string(Isa isa) {
  if constexpr (!all_isas) return "native";
  return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "portable";
}

bool has_bf16_products() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

}  // namespace heed
