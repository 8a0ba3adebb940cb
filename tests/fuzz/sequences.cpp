// Fuzz target: cached sequences, raw and with a valid checksum.
#include "heed/data/text/labelled_sequences.h"

#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  Sequences set;
  if (law::obeys("kept", input, [&] { set = decode_sequences(input, "kept"); }, {.per_byte = 4})) {
    law::demand(encode(set) == input, "saved as it was read");
  }
  return 0;
}
