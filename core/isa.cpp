// Chooses the instruction set of the kernels once, from those of the CPU.
#include "heed/core/isa.h"

#include <array>
#include <cstdlib>
#include <string>

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "heed/core/error.h"
#include "heed/core/startup_cpu_check.h"

namespace heed {

namespace {

/// Names of the sets that the compiler may have used, then a null.
const char* const enabled_sets[] = {
#ifdef __SSSE3__
    "ssse3",
#endif
#ifdef __SSE4_1__
    "sse4.1",
#endif
#ifdef __SSE4_2__
    "sse4.2",
#endif
#ifdef __POPCNT__
    "popcnt",
#endif
#ifdef __AVX__
    "avx",
#endif
#ifdef __AVX2__
    "avx2",
#endif
#ifdef __FMA__
    "fma",
#endif
#ifdef __BMI__
    "bmi",
#endif
#ifdef __BMI2__
    "bmi2",
#endif
#ifdef __FMA4__
    "fma4",
#endif
#ifdef __XOP__
    "xop",
#endif
#ifdef __AVX512F__
    "avx512f",
#endif
#ifdef __AVX512CD__
    "avx512cd",
#endif
#ifdef __AVX512BW__
    "avx512bw",
#endif
#ifdef __AVX512DQ__
    "avx512dq",
#endif
#ifdef __AVX512VL__
    "avx512vl",
#endif
#ifdef __AVX512IFMA__
    "avx512ifma",
#endif
#ifdef __AVX512VBMI__
    "avx512vbmi",
#endif
#ifdef __AVX512VBMI2__
    "avx512vbmi2",
#endif
#ifdef __AVX512VPOPCNTDQ__
    "avx512vpopcntdq",
#endif
#ifdef __AVX512BITALG__
    "avx512bitalg",
#endif
#ifdef __AVX512VNNI__
    "avx512vnni",
#endif
#ifdef __AVX512BF16__
    "avx512bf16",
#endif
    nullptr};

}  // namespace

const char* const* const needed_instructions = enabled_sets;

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

/// Whether the CPU multiplies bfloat16 numbers by matrix tiles, and the system lets this process use them.
bool may_use_amx() {
#if defined(__x86_64__) && defined(__linux__)
  if (!is_supported(Isa::avx512) || !has_bf16_products() || !__builtin_cpu_supports("amx-tile") ||
      !__builtin_cpu_supports("amx-bf16"))
    return false;
  constexpr int request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

/// The sets of kernels and of matrix tiles in use.
struct Chosen {
  Isa isa;
  bool amx = false;
};

/// The instruction set that HEED_ISA names, or the widest of this CPU.
Chosen choose() {
  const char* requested = std::getenv("HEED_ISA");
  if constexpr (!all_isas) {
    if (const char* name = missing_instruction(needed_instructions))
      fail(Fault::device, "heed was compiled for another CPU: it uses ", name, ", which this one lacks.");
    if (requested != nullptr && *requested != '\0' && requested != std::string("native")) {
      fail("HEED_ISA=", requested,
           ", but this build has only the instructions of the CPU it was compiled on. Unset ",
           "HEED_ISA, or build with -DHEED_NATIVE=OFF.");
    }
    return {Isa::portable, may_use_amx()};
  }
  constexpr std::array known{Chosen{Isa::avx512, true}, Chosen{Isa::avx512}, Chosen{Isa::avx2},
                             Chosen{Isa::portable}};
  std::string supported;
  for (const Chosen& candidate : known) {
    if (candidate.amx ? !may_use_amx() : !is_supported(candidate.isa)) continue;
    const std::string name = candidate.amx ? "amx" : to_string(candidate.isa);
    if (requested == nullptr || *requested == '\0' || name == requested) return candidate;
    supported += (supported.empty() ? "" : ", ") + name;
  }
  fail("HEED_ISA=", requested, " is not a set of instructions of this CPU. It has: ", supported,
       ". Unset it to use the widest.");
}

/// What this process uses; chosen once.
const Chosen& chosen() {
  static const Chosen once = choose();
  return once;
}

}  // namespace

Isa isa() { return chosen().isa; }
bool has_amx() { return chosen().amx; }
const char* isa_name() { return all_isas && has_amx() ? "amx" : to_string(isa()); }

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
