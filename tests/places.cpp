// The folders that the build names, in one file: the others compile alike in every checkout.
#include "tests/places.h"

namespace heed {

std::string source_folder() { return HEED_SOURCE_DIR; }

std::string program() { return HEED_PROGRAM; }

}  // namespace heed
