// Fuzz target: tokenizers of other programs: tokenizer.json of Hugging Face, tokenizer.bin of llama2.c.
#include "heed/core/io/files.h"
#include "heed/data/tokenizers/llama2_c.h"
#include "heed/data/tokenizers/tokenizer_json.h"
#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  const Path path = law::planted(input, ".tokenizer");
  std::unique_ptr<Tokenizer> tokenizer;
  const auto read = [&] {
    tokenizer = input.starts_with('{') ? read_tokenizer_json(path)
                                       : parse_llama2_c_tokenizer(io::read(path), path.string());
  };
  if (!law::obeys(path.string(), input, read, {.per_byte = 400, .parts = input.starts_with('{')})) return 0;
  const std::string text = "The moon <|im_start|> 1234 \xc3\xa9\xff";
  std::vector<int32_t> ids;
  try {
    ids = tokenizer->encode(text);
    (void)tokenizer->decode(ids);
  } catch (const Error& error) {  // a tokenizer without an unknown token, or steps that make too much of it
    const bool is_unknown = error.fault() == Fault::usage && tokenizer->unknown() < 0,
               is_growth = error.fault() == Fault::data &&
                           std::string_view(error.what()).find("more are legal") != std::string_view::npos;
    law::demand(is_unknown || is_growth, error.what());
    return 0;
  }
  for (const int32_t id : ids) law::demand(id >= 0 && id < tokenizer->size(), "ids are below the size");
  const auto again = load_tokenizer(tokenizer->kind(), tokenizer->save());
  law::demand(again->encode(text) == ids, "a saved tokenizer gives the same ids");
  return 0;
}
