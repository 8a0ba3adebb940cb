// Paths defined by the build, in one file: all other objects are the same in every checkout.
#include "heed/tests/source_paths.h"

namespace heed {

std::string source_folder() { return HEED_SOURCE_DIR; }

std::string program() { return HEED_PROGRAM; }

std::string program_with_faults() { return HEED_PROGRAM_WITH_FAULTS; }

std::string own_program() { return HEED_OWN_PROGRAM; }

std::string fit_program() { return HEED_FIT_PROGRAM; }

std::string locale_program() { return HEED_LOCALE_PROGRAM; }

}  // namespace heed
