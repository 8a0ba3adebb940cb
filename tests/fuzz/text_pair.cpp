// Fuzz target: a pair of text files; the first NUL of the input separates the two.
#include "heed/core/io/files.h"
#include "heed/data/text/parallel_text.h"
#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  const size_t cut = std::min(input.find('\0'), size);
  static const Path folder = law::planted_folder();
  const std::string_view sides[] = {input.substr(0, cut), input.substr(std::min(cut + 1, size))};
  io::write_plain(folder / "corpus.en", std::span(&sides[0], 1));
  io::write_plain(folder / "corpus.it", std::span(&sides[1], 1));
  PairFile file;
  const law::Bounds bounds{.per_byte = 1 << 14};
  if (!law::obeys((folder / "corpus").string(), input, [&] { file = read_pairs(folder / "corpus"); },
                  bounds)) {
    return 0;
  }
  law::demand(file.format == "text pair" && file.files.size() == 2, "both files are named");
  law::demand(file.lines == file.empty + static_cast<int64_t>(file.pairs.size()), "every line is counted");
  return 0;
}
