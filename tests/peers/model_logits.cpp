// Logits of a run of a language model as a .npy file, for model_files.py.
// Usage: model_logits RUN OUT.npy ID...
#include <cstdio>

#include "heed/core/io/number_text.h"
#include "heed/core/tensor_npy.h"
#include "heed/nn/transformer.h"
#include "heed/train/session/loaded_run.h"

int main(int count, char** words) {
  using namespace heed;
  if (count < 4) {
    std::fprintf(stderr, "model_logits RUN OUT.npy ID...\n");
    return 2;
  }
  try {
    const LoadedRun run = load_run(words[1], {});
    std::vector<int32_t> ids;
    for (int i = 3; i < count; ++i) ids.push_back(static_cast<int32_t>(*parsed_integer(words[i])));
    const NoGrad no_grad;
    const auto length = static_cast<int64_t>(ids.size());
    write_npy(words[2],
              dynamic_cast<DecoderOnly&>(*run.model)(Tensor::of<int32_t>(ids, Shape{1, length}), {}));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
