// Fuzz target: safetensors files.
#include "heed/core/io/safetensors.h"

#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  SafeTensors file;
  const auto read = [&] { file = SafeTensors::parse(std::string(input), "run/model.safetensors"); };
  if (!law::obeys("run/model.safetensors", input, read)) return 0;
  int64_t covered = 0;
  std::vector<TensorBytes> tensors;
  for (const TensorEntry& entry : file.entries()) {
    covered += static_cast<int64_t>(file.bytes(entry).size());
    law::demand(file.find(entry.name) == &entry, "a tensor is found by its name");
    law::demand(static_cast<int64_t>(file.array(entry.name).bytes.size()) == entry.size, "an array is whole");
    tensors.push_back({entry.name, entry.dtype, entry.shape, file.bytes(entry)});
  }
  law::demand(covered <= static_cast<int64_t>(size), "tensors do not overlap");
  (void)file.damaged();
  const SafeTensors opened = SafeTensors::open(law::planted(input, ".safetensors"));
  law::demand(opened.entries().size() == file.entries().size(), "the file on the disk has the same tensors");
  for (const TensorEntry& entry : opened.entries())
    law::demand(opened.array(entry.name).bytes == file.array(entry.name).bytes, "and the same numbers");
  const SafeTensors again = SafeTensors::parse(encode_safetensors(tensors, file.metadata()), "again");
  law::demand(again.entries().size() == file.entries().size(), "writing keeps every tensor");
  law::demand(again.damaged() == nullptr, "what was just written is not damaged");
  for (const TensorEntry& entry : again.entries()) {
    const TensorEntry* was = file.find(entry.name);
    law::demand(was != nullptr && was->dtype == entry.dtype && was->shape == entry.shape,
                "writing keeps names, types and shapes");
    const auto before = file.bytes(*was), after = again.bytes(entry);
    law::demand(std::equal(before.begin(), before.end(), after.begin(), after.end()),
                "writing keeps the numbers");
  }
  return 0;
}
