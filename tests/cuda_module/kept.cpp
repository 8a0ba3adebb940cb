// A function of a library that the module alone uses: the linker must not leave it out of the program.
#include "heed/tests/cuda_module/parts.h"

int heed::parts::used_by_the_module_alone() { return 7; }
