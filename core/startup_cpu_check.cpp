// Ends a program that was compiled for another CPU. This file is compiled for every x86-64 and calls no
// inline function, template or constructor of the library, since the linker might choose a copy for the wrong
// CPU.
#include "heed/core/startup_cpu_check.h"

#include <string.h>
#include <unistd.h>

namespace heed {

const char* missing_instruction([[maybe_unused]] const char* const* needed) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const struct {
    const char* name;
    bool supported;
  } known[] = {
      {"ssse3", __builtin_cpu_supports("ssse3") != 0},
      {"sse4.1", __builtin_cpu_supports("sse4.1") != 0},
      {"sse4.2", __builtin_cpu_supports("sse4.2") != 0},
      {"popcnt", __builtin_cpu_supports("popcnt") != 0},
      {"avx", __builtin_cpu_supports("avx") != 0},
      {"avx2", __builtin_cpu_supports("avx2") != 0},
      {"fma", __builtin_cpu_supports("fma") != 0},
      {"bmi", __builtin_cpu_supports("bmi") != 0},
      {"bmi2", __builtin_cpu_supports("bmi2") != 0},
      {"fma4", __builtin_cpu_supports("fma4") != 0},
      {"xop", __builtin_cpu_supports("xop") != 0},
      {"avx512f", __builtin_cpu_supports("avx512f") != 0},
      {"avx512cd", __builtin_cpu_supports("avx512cd") != 0},
      {"avx512bw", __builtin_cpu_supports("avx512bw") != 0},
      {"avx512dq", __builtin_cpu_supports("avx512dq") != 0},
      {"avx512vl", __builtin_cpu_supports("avx512vl") != 0},
      {"avx512ifma", __builtin_cpu_supports("avx512ifma") != 0},
      {"avx512vbmi", __builtin_cpu_supports("avx512vbmi") != 0},
      {"avx512vbmi2", __builtin_cpu_supports("avx512vbmi2") != 0},
      {"avx512vpopcntdq", __builtin_cpu_supports("avx512vpopcntdq") != 0},
      {"avx512bitalg", __builtin_cpu_supports("avx512bitalg") != 0},
      {"avx512vnni", __builtin_cpu_supports("avx512vnni") != 0},
      {"avx512bf16", __builtin_cpu_supports("avx512bf16") != 0},
  };
  for (; *needed != nullptr; ++needed) {
    bool is_supported = false;
    for (const auto& set : known) is_supported |= set.supported && strcmp(set.name, *needed) == 0;
    if (!is_supported) return *needed;
  }
#endif
  return nullptr;
}

namespace {

void print_error(const char* text) {
  if (write(STDERR_FILENO, text, strlen(text)) < 0) _exit(8);
}

/// Runs before the constructors of other files, which may use these instructions.
__attribute__((constructor(101))) void end_on_another_cpu() {
  const char* missing = missing_instruction(needed_instructions);
  if (missing == nullptr) return;
  print_error("heed: this program was compiled for another CPU: it uses ");
  print_error(missing);
  print_error(
      ", which this one lacks. Compile it on this machine (remove its build folder, then ./heed), or for "
      "every ");
  print_error("x86-64: cmake --preset package && cmake --build --preset package\n");
  _exit(8);
}

}  // namespace
}  // namespace heed
