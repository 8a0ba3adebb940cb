// Fuzz target: metadata of Pathfinder.
#include "heed/data/synthetic/pathfinder.h"

#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  std::vector<PathfinderEntry> entries;
  if (law::obeys("0.npy", input, [&] { entries = parse_pathfinder_metadata(input, "0.npy"); },
                 {.per_byte = 200})) {
    for (const PathfinderEntry& one : entries) {
      law::demand(one.label < 2, "a label is 0 or 1");
      law::demand(one.image.find("..") == std::string::npos && !one.image.starts_with('/'),
                  "no image is outside of its folder");
    }
  }
  return 0;
}
