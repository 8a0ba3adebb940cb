// Fuzz target: splitting of arbitrary bytes into words and lines.
#include "heed/data/text/text.h"

#include "heed/data/tokenizers/vocabulary.h"
#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  const auto inside = [&](std::string_view part) {
    return part.empty() || (part.data() >= input.data() && part.data() + part.size() <= input.data() + size);
  };
  const auto read = [&] {
    const auto pieces = word_pieces(input);
    size_t at = 0;
    for (const std::string_view piece : pieces) {
      const auto begin = static_cast<size_t>(piece.data() - input.data());
      law::demand(!piece.empty() && inside(piece) && begin >= at, "pieces follow each other");
      at = begin + piece.size();
    }
    (void)detokenise(pieces);
    law::demand(inside(trimmed(input)), "trimming only takes away");
    std::string copy;
    for (size_t i = 0; i < size;) append_code_point(copy, next_code_point(input, i));
    const bool valid = invalid_utf8(input) == std::string_view::npos;
    law::demand(invalid_utf8(copy) == std::string_view::npos, "what is written is UTF-8");
    law::demand(!valid || copy == input, "UTF-8 comes back as it was");
    for (const std::string_view line : split_lines(input)) law::demand(inside(line), "a line is of the text");
  };
  law::demand(law::obeys("text", input, read, {.per_byte = 200}), "any text can be split");
  if (law::obeys("data/text.txt", input, [&] { check_text(input, "data/text.txt"); })) {
    law::demand(invalid_utf8(input) == std::string_view::npos, "bad UTF-8 is refused");
  }
  return 0;
}
