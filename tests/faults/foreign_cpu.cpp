// A program compiled for a CPU with an instruction set that no CPU has: it must say so instead of running.
#include <cstdio>

#include "heed/core/startup_cpu_check.h"

static constexpr const char* names[] = {"sse4.2", "abacus", nullptr};
const char* const* const heed::needed_instructions = names;

int main() { std::puts("main() has run"); }
