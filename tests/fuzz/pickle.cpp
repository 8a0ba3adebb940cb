// Fuzz target: pickles.
#include "heed/core/io/pickle.h"

#include <algorithm>

#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static constexpr std::string_view names[] = {"collections.OrderedDict", "torch._utils._rebuild_tensor_v2",
                                               "torch._utils._rebuild_parameter", "torch.FloatStorage"};
  const std::string_view input = bytes_of(data, size);
  Pickle pickle;
  const auto read = [&] { pickle = Pickle::parse(input, "run/data.pkl", names); };
  if (!law::obeys("run/data.pkl", input, read, {.per_byte = 400})) return 0;
  const PickleValue& root = pickle.root();
  law::demand(root.offset < size, "a value begins in the pickle");
  for (const int32_t item : root.items) {
    const PickleValue& one = pickle.at(item);
    law::demand(one.offset < size, "a value begins in the pickle");
    if (one.kind == PickleValue::Kind::text)
      law::demand(one.text.data() >= input.data() && one.text.data() + one.text.size() <= input.data() + size,
                  "a text lies in the pickle");
    if (one.kind == PickleValue::Kind::global)
      law::demand(std::ranges::find(names, one.text) != std::end(names), "a name is one of those allowed");
  }
  return 0;
}
