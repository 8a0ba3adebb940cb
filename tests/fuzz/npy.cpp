// Fuzz target: NumPy files.
#include "heed/core/io/npy.h"

#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  Array array;
  if (!law::obeys("data/input.npy", input, [&] { array = decode_npy(input, "data/input.npy"); })) return 0;
  const Array again = decode_npy(encode_npy(array), "again");
  law::demand(again.dtype == array.dtype && again.shape == array.shape && again.bytes == array.bytes,
              "writing and reading keeps the array");
  return 0;
}
