// Tokens of texts and logits of a run of the task mlm, for bert_transformers.py, and tokens and texts of a
// tokenizer.json, for tokenizer_files.py, with the file that Heed writes of it. Usage: tokens_judge tokens
// RUN TEXTS.json IDS.json | tokens_judge logits RUN OUT.npy ID...
//        tokens_judge file TOKENIZER.json TEXTS.json OUT.json WRITTEN.json
#include <cstdio>
#include <limits>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/core/io/number_text.h"
#include "heed/core/tensor_npy.h"
#include "heed/data/text/text.h"
#include "heed/data/tokenizers/tokenizer_json.h"
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

/// Writes the ids of each text and the text that they decode to, and the file again.
void write_file_tokens(const Path& file, const Path& texts, const Path& out, const Path& written) {
  const auto read = read_tokenizer_json(file);
  const auto tokenizer = load_tokenizer(read->kind(), read->save());
  const Json all = parse_json(io::read(texts), texts.string());
  Json lists = Json::List(), decoded = Json::List();
  for (const Json& one : all.list()) {
    const std::vector<int32_t> ids = tokenizer->encode(one.text());
    lists.push(Json::List(ids.begin(), ids.end()));
    decoded.push(as_utf8(tokenizer->decode(ids)));
  }
  io::write(out, Json::object({{"ids", std::move(lists)}, {"texts", std::move(decoded)}}).dump());
  io::write(written, tokenizer_json(*tokenizer));
}

}  // namespace

int main(int count, char** words) {
  if (count < 5) {
    std::fprintf(stderr,
                 "tokens_judge tokens RUN TEXTS.json IDS.json | logits RUN OUT.npy ID... | "
                 "file TOKENIZER.json TEXTS.json OUT.json WRITTEN.json\n");
    return 2;
  }
  try {
    if (std::string(words[1]) == "file" && count == 6) {
      write_file_tokens(words[2], words[3], words[4], words[5]);
      return 0;
    }
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
