// Fuzz target: config.json of a BERT.
#include "heed/core/io/json.h"
#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"
#include "heed/train/config/config.h"
#include "heed/train/run/bert_huggingface.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  const std::string name = "config.json";
  BertConfig config;
  const auto read = [&] { config = parse_bert_config(parse_json(input, name), name); };
  if (!law::obeys(name, input, read, {.per_byte = 100, .parts = true})) return 0;
  law::demand(config.vocabulary > 0, "a model has tokens");
  for (const auto& [key, value] : bert_settings(config)) law::demand(!value.empty(), "a setting has a value");
  return 0;
}
