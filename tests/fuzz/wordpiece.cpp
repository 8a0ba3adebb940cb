// Fuzz target: the tokenizer of a BERT in a folder: tokenizer.json, or vocab.txt.
#include "heed/data/tokenizers/wordpiece.h"

#include "heed/core/io/files.h"
#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  const Path folder = law::planted_folder(),
             path = folder / (input.starts_with('{') ? "tokenizer.json" : "vocab.txt");
  io::write_plain(path, std::span(&input, 1), false);
  std::unique_ptr<Tokenizer> tokenizer;
  const auto read = [&] { tokenizer = read_wordpiece(folder); };
  if (!law::obeys(path.string(), input, read, {.per_byte = 400, .parts = true})) return 0;
  const std::string text = "The moon [MASK] don't 1234 \xc3\xa9\xff";
  const std::vector<int32_t> ids = tokenizer->encode(text);
  for (const int32_t id : ids) law::demand(id >= 0 && id < tokenizer->size(), "ids are below the size");
  (void)tokenizer->decode(ids);
  const auto again = load_tokenizer(tokenizer->kind(), tokenizer->save());
  law::demand(again->encode(text) == ids, "a saved tokenizer gives the same ids");
  return 0;
}
