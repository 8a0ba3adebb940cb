// Fuzz target: weights and optimizer state of a checkpoint, loaded into an existing model.
#include "heed/core/random.h"
#include "heed/nn/linear.h"
#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"
#include "heed/train/optim/optimizer.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  Rng rng(1);
  Linear model(3, 2, rng);
  const std::string before = save_bytes(model);
  const auto load = [&] { load_bytes(model, std::string(input)); };
  if (law::obeys("model.safetensors", input, load, {.numeric = true})) {
    law::demand(save_bytes(model).size() == before.size(), "a model keeps its shape");
  } else {
    law::demand(save_bytes(model) == before, "what is refused changes nothing");
  }
  Optimizer optimizer(model, {});
  if (law::obeys("optim.safetensors", input, [&] { optimizer.load(std::string(input)); }))
    (void)optimizer.save();
  return 0;
}
