// Fuzz target: gzip data.
#include "heed/core/io/gzip.h"

#include "heed/tests/deflate.h"
#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  constexpr int64_t cap = 1 << 20;
  std::string bytes;
  const law::Bounds bounds{.heap = int64_t{4} << 20};
  if (law::obeys(
          "data/input.gz", input, [&] { bytes = inflate(input, cap, "data/input.gz"); }, bounds)) {
    law::demand(static_cast<int64_t>(bytes.size()) <= cap, "no more than the cap comes out");
    law::demand(inflate(deflate(bytes), cap) == bytes, "packing and inflating keeps the bytes");
  }
  // Any bytes can be packed.
  law::demand(inflate(deflate(input), static_cast<int64_t>(size)) == input, "packing keeps any bytes");
  return 0;
}
