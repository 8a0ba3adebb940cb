// The program heed.
#include <cstdio>
#include <cstdlib>

#include "heed/core/error.h"
#include "heed/train/commands/command.h"

int main(int count, char** arguments) {
  const int code = heed::run_program(count, arguments);
  if (code == static_cast<int>(heed::Fault::memory)) {
    // Threads of OpenBLAS that found no memory look for it for ever, and an ordinary end waits for them.
    std::fflush(nullptr);
    std::quick_exit(code);
  }
  return code;
}
