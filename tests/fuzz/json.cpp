// Fuzz target: JSON.
#include "heed/core/io/json.h"

#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  Json value;
  if (!law::obeys("run/state.json", input, [&] { value = parse_json(input, "run/state.json"); })) return 0;
  for (const int indent : {-1, 2}) {
    const std::string written = value.dump(indent);
    law::demand(parse_json(written, "again").dump(indent) == written, "writing and reading keeps the value");
  }
  return 0;
}
