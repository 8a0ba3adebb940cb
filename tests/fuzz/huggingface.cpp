// Fuzz target: word-level tokenizer files in JSON.
#include "heed/data/tokenizers/vocabulary.h"
#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  const Path path = law::planted(input, ".json");
  int64_t pieces = 0;
  const auto read = [&] {
    const Vocabulary vocabulary = Vocabulary::load_huggingface(path);
    pieces = vocabulary.size();
    for (int64_t id = 0; id < pieces; ++id) {
      law::demand(vocabulary.id(vocabulary.piece(static_cast<int32_t>(id))) == id, "a piece has its id");
    }
  };
  if (law::obeys(path.string(), input, read, {.per_byte = 100}))
    law::demand(pieces >= 4, "the special pieces");
  return 0;
}
