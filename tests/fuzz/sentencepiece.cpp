// Fuzz target: saved sentencepiece models, raw and with a valid hash.
#include "heed/core/io/hash.h"
#include "heed/data/tokenizers/tokenizer.h"
#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

namespace {

constexpr std::string_view title = "heed sentencepiece 1\n";
constexpr size_t head = title.size() + 64 + 1;

void check(std::string_view bytes) {
  std::unique_ptr<Tokenizer> tokenizer;
  const auto read = [&] { tokenizer = load_tokenizer("sentencepiece", bytes, "ckpt/tokenizer.source"); };
  if (!law::obeys("ckpt/tokenizer.source", bytes, read, {.per_byte = 200})) return;
  law::demand(tokenizer->save() == bytes, "a model is saved as it was read");
  for (const char* words : {"Una volta c'era un pezzo di legno.", "\xFF\xC0 <s>\xE2\x96\x81", ""}) {
    const std::vector<int32_t> ids = tokenizer->encode(words);
    for (const int32_t id : ids) {
      law::demand(id >= 0 && id < tokenizer->size(), "every id has a piece");
      (void)tokenizer->piece(id);
    }
    (void)tokenizer->decode(ids);
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  check(input);
  const std::string_view model = input.starts_with(title) && size > head ? input.substr(head) : input;
  check(text(title, sha256_hex(model), "\n", model));
  return 0;
}
