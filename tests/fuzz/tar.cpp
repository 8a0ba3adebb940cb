// Fuzz target: tar archives, raw and with corrected header checksums.
#include "heed/data/formats/tar.h"

#include <set>

#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

namespace {

void read_as_archive(std::string_view input) {
  constexpr TarLimits limits{.entries = 20};
  std::vector<TarEntry> entries;
  const auto read = [&] { entries = untar(input, "data/input.tar", limits); };
  if (!law::obeys("data/input.tar", input, read, {.heap = int64_t{8} << 20})) return;
  size_t bytes = 0;
  std::set<std::string> names;
  for (const TarEntry& entry : entries) {
    const Path name = Path("folder") / entry.name;
    law::demand(name.lexically_normal() == name && name.string().starts_with("folder/"),
                "a name stays within its folder");
    law::demand(entry.name.find('\\') == std::string::npos && names.insert(entry.name).second,
                "a name is plain and there once");
    law::demand(entry.bytes.data() >= input.data() &&
                    entry.bytes.data() + entry.bytes.size() <= input.data() + input.size(),
                "the bytes lie within the archive");
    bytes += entry.bytes.size();
  }
  law::demand(bytes <= input.size() && static_cast<int64_t>(entries.size()) <= limits.entries,
              "the limits hold");
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  read_as_archive(input);
  // Damage rarely leaves a sum right: what lies behind that check is read too.
  std::string mended(input);
  for (size_t at = 0; at + 512 <= mended.size(); at += 512) {
    if (mended.compare(at + 257, 5, "ustar") != 0) continue;
    mended.replace(at + 148, 8, "        ");
    unsigned sum = 0;
    for (size_t i = at; i < at + 512; ++i) sum += static_cast<unsigned char>(mended[i]);
    for (int digit = 5; digit >= 0; --digit, sum /= 8)
      mended[at + 148 + static_cast<size_t>(digit)] = static_cast<char>('0' + sum % 8);
    mended[at + 154] = '\0';
  }
  read_as_archive(mended);
  return 0;
}
