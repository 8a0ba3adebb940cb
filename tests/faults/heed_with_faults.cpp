// heed with a fault planted into its training, for tests that look at the program from outside:
// heed_with_faults gradient@3 train ... is heed train ... in which FaultInjection("gradient@3") takes part.
#include <cstdio>

#include "heed/core/error.h"
#include "heed/tests/faults/fault_injection.h"
#include "heed/train/program.h"

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "heed_with_faults FAULT COMMAND ...: a fault is such as gradient@3\n");
    return static_cast<int>(heed::Fault::usage);
  }
  try {
    heed::FaultInjection fault(arguments[1]);
    arguments[1] = arguments[0];
    return heed::run_program(count - 1, arguments + 1, {&fault});
  } catch (const heed::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.fault());
  }
}
