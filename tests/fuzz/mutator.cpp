// A mutation that libFuzzer lacks: repeats a part thousands of times.
#include <algorithm>

#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/mutate.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t maximum);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t maximum, unsigned seed) {
  if (seed % 64 != 0) return LLVMFuzzerMutate(data, size, maximum);
  const std::string longer = heed::repeat_part(heed::bytes_of(data, size), seed / 64);
  if (longer.size() > maximum) return LLVMFuzzerMutate(data, size, maximum);
  std::copy(longer.begin(), longer.end(), data);
  return longer.size();
}
