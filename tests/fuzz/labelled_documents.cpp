// Fuzz target: lines of reviews, and of pairs of documents.
#include "heed/data/formats/labelled_documents.h"

#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  for (const auto read :
       {+[](std::string_view all) { return parse_reviews(all, "texts.tsv"); },
        +[](std::string_view all) { return parse_document_pairs(all, "texts.tsv", 100); }}) {
    Sequences set;
    if (law::obeys("texts.tsv", input, [&] { set = read(input); }, {.per_byte = 100})) {
      law::demand(set.count() > 0, "a file without a line is refused");
      law::demand(static_cast<int64_t>(set.ends.size()) == set.count() * set.parts, "every text is there");
      law::demand(set.bytes.size() <= size, "no byte comes from nowhere");
    }
  }
  return 0;
}
