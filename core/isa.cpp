// Finds out what this CPU can do, once.
#include "heed/core/isa.h"

#include <array>
#include <cstdlib>
#include <string>

#include "heed/core/error.h"

namespace heed {
namespace {

/// Whether this CPU runs the kernels of `wanted`.
bool runs(Isa wanted) {
  if (wanted == Isa::portable) return true;
#if defined(__x86_64__)
  const bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (wanted == Isa::avx2) return wide;
  return wide && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

Isa choose() {
  if constexpr (!all_isas) return Isa::portable;
  constexpr std::array known{Isa::avx512, Isa::avx2, Isa::portable};
  const char* wish = std::getenv("HEED_ISA");
  std::string there;
  for (const Isa one : known) {
    if (!runs(one)) continue;
    if (wish == nullptr || *wish == '\0' || to_string(one) == std::string(wish)) return one;
    there += (there.empty() ? "" : ", ") + std::string(to_string(one));
  }
  fail("HEED_ISA=", wish, " is not a set of instructions of this CPU. It has: ", there,
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
