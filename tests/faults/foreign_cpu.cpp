// A program compiled for a CPU with an instruction set that no CPU has: it must say so instead of running.
#include <cstdio>

#include "heed/core/startup_cpu_check.h"

const char* const heed::needed_instructions[] = {"sse4.2", "abacus", nullptr};

int main() { std::puts("main() has run"); }
