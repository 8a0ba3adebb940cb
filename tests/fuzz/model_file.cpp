// Fuzz target: files of models of other programs, as `heed import` reads them: GGUF, llm.c, llama2.c,
// PyTorch, JSON.
#include "heed/train/run/model_file.h"

#include "heed/core/io/safetensors.h"
#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  const Path path = law::planted(input, ".model");
  ImportedModel model;
  const auto read = [&] { model = read_model_file(path); };
  if (!law::obeys(path.string(), input, read, {.per_byte = 400, .parts = true, .numeric = true})) return 0;
  const SafeTensors weights = SafeTensors::parse(model.weights, "weights");
  law::demand(!weights.entries().empty(), "a model has tensors");
  law::demand(weights.damaged() == nullptr, "what was just made is not damaged");
  for (const TensorEntry& entry : weights.entries()) weights.check_finite(entry);
  law::demand(model.tokenizer ? model.tokenizer->size() > 0 : model.vocabulary > 0, "a model has tokens");
  return 0;
}
