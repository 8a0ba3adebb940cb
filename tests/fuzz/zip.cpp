// Fuzz target: zip archives.
#include "heed/data/formats/zip.h"

#include <set>

#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  constexpr ZipLimits limits{.entries = 20, .bytes = 1 << 20};
  std::vector<ZipEntry> entries;
  const auto read = [&] { entries = unzip(input, "data/input.zip", limits); };
  if (!law::obeys("data/input.zip", input, read, {.heap = int64_t{8} << 20})) return 0;
  int64_t bytes = 0;
  std::set<std::string> names;
  for (const ZipEntry& entry : entries) {
    const Path name = Path("folder") / entry.name;
    law::demand(name.lexically_normal() == name && name.string().starts_with("folder/"),
                "a name stays within its folder");
    law::demand(entry.name.find('\\') == std::string::npos && names.insert(entry.name).second,
                "a name is plain and there once");
    bytes += static_cast<int64_t>(entry.bytes.size());
  }
  law::demand(bytes <= limits.bytes && static_cast<int64_t>(entries.size()) <= limits.entries,
              "the limits hold");
  return 0;
}
