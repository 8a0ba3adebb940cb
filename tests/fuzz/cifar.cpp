// Fuzz target: binary records of CIFAR-10, in grey and in colour.
#include "heed/data/formats/cifar.h"

#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  for (const bool colour : {false, true}) {
    Sequences set;
    if (law::obeys("batch.bin", input, [&] { set = parse_cifar(input, colour, "batch.bin"); },
                   {.per_byte = 4})) {
      law::demand(set.count() * (colour ? 3073 : 1025) == static_cast<int64_t>(size),
                  "every record is there");
      law::demand(static_cast<int64_t>(set.bytes.size()) == set.count() * 1024, "every pixel is there");
    }
  }
  return 0;
}
