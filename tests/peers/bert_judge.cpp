// Tokens of texts and logits of a run of the task mlm, for bert_transformers.py.
// Usage: bert_judge tokens RUN TEXTS.json IDS.json | bert_judge logits RUN OUT.npy ID...
#include <cstdio>
#include <limits>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/core/io/number_text.h"
#include "heed/core/tensor_npy.h"
#include "heed/nn/masked_language_model.h"
#include "heed/train/run/checkpoint_tokenizers.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/tasks/language/masked_tokens.h"

namespace {

using namespace heed;

/// Writes the ids of each text, start and end included.
void write_tokens(const LoadedRun& run, const Path& texts, const Path& out) {
  const auto tokenizer = artifact_tokenizer(tokenizer_files(run.checkpoint), "text");
  const Json all = parse_json(io::read(texts), texts.string());
  Json lists = Json::List();
  for (const Json& one : all.list()) {
    Json ids = Json::List();
    for (const int32_t id :
         between_ends(*tokenizer, tokenizer->encode(one.text()), std::numeric_limits<int64_t>::max()))
      ids.push(id);
    lists.push(std::move(ids));
  }
  io::write(out, lists.dump());
}

}  // namespace

int main(int count, char** words) {
  if (count < 5) {
    std::fprintf(stderr, "bert_judge tokens RUN TEXTS.json IDS.json | logits RUN OUT.npy ID...\n");
    return 2;
  }
  try {
    const LoadedRun run = load_run(words[2], {});
    if (std::string(words[1]) == "tokens") {
      write_tokens(run, words[3], words[4]);
      return 0;
    }
    std::vector<int32_t> ids;
    for (int i = 4; i < count; ++i) ids.push_back(static_cast<int32_t>(*parsed_integer(words[i])));
    const NoGrad no_grad;
    const auto& model = dynamic_cast<MaskedLanguageModel&>(*run.model);
    write_npy(words[3], model.logits(model.hidden(
                            Tensor::of<int32_t>(ids, Shape{1, static_cast<int64_t>(ids.size())}), {}, {})));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
