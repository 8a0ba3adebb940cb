// Fuzz target: saved vocabularies of words, characters and byte pairs.
#include "heed/data/tokenizers/tokenizer.h"
#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  for (const char* kind : {"word", "character", "byte_pair"}) {
    std::unique_ptr<Tokenizer> tokenizer;
    const auto read = [&] { tokenizer = load_tokenizer(kind, input, "ckpt/tokenizer.source"); };
    if (!law::obeys("ckpt/tokenizer.source", input, read, {.per_byte = 100})) continue;
    law::demand(tokenizer->save() == input, "a vocabulary is saved as it was read");
    std::vector<int32_t> ids;
    for (int32_t id = 0; id < tokenizer->size(); ++id) {
      ids.push_back(id);
      (void)tokenizer->piece(id);
    }
    const std::string decoded = tokenizer->decode(ids);
    if (std::string_view(kind) == "character") {
      law::demand(tokenizer->encode(decoded) == ids, "characters come back as the same ids");
    } else {
      (void)tokenizer->encode(input);
    }
  }
  return 0;
}
