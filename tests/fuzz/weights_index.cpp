// Fuzz target: model.safetensors.index.json, which says in which of several files a tensor is.
#include <vector>

#include "heed/core/io/files.h"
#include "heed/core/io/safetensors.h"
#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"
#include "heed/train/run/tensor_files.h"

using namespace heed;

namespace {

/// A folder with two files of weights, a.safetensors with x and y, and b.safetensors with z.
Path folder_of_weights() {
  const Path folder = law::planted_folder();
  const std::vector<float> numbers{1, 2};
  const auto tensor = [&](const char* name) {
    return TensorBytes{name, "F32", {2}, std::as_bytes(std::span(numbers))};
  };
  io::write(folder / "a.safetensors", encode_safetensors(std::vector<TensorBytes>{tensor("x"), tensor("y")}));
  io::write(folder / "b.safetensors", encode_safetensors(std::vector<TensorBytes>{tensor("z")}));
  return folder;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  static const Path folder = folder_of_weights();
  const Path path = folder / weights_index_file;
  io::write_plain(path, std::span(&input, 1), false);
  TensorFiles found;
  const auto read = [&] {
    try {
      found = TensorFiles::open(folder);
    } catch (const Error& error) {  // a file that the index names is missing
      if (error.fault() != Fault::file) throw;
      fail(Fault::data, path.string(), ": ", error.what());
    }
  };
  if (!law::obeys(path.string(), input, read, {.per_byte = 400, .parts = true})) return 0;
  size_t tensors = 0;
  for (const SafeTensors& file : found.files) tensors += file.entries().size();
  law::demand(found.files.size() <= 2 && tensors <= 3, "tensors are those of the two files");
  return 0;
}
