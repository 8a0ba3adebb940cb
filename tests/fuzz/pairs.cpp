// Fuzz target: files of sentence pairs, tab-separated or JSON lines, plain or gzip.
#include <algorithm>
#include <span>

#include "heed/core/io/gzip.h"
#include "heed/data/text/parallel_text.h"
#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  const Path path = law::planted(input, ".tsv");
  const law::Bounds bounds{.per_byte = is_gzip(input) ? 1 << 14 : 64};
  PairFile file;
  if (!law::obeys(
          path.string(), input, [&] { file = read_pairs(path); }, bounds))
    return 0;
  law::demand(!file.pairs.empty(), "an accepted file has a pair");
  law::demand(file.lines == file.empty + static_cast<int64_t>(file.pairs.size()), "every line is counted");
  if (file.format != "tsv") return 0;
  // The first line decides for the whole file whether it is JSON, and may begin with a byte order mark: no
  // pair comes first.
  std::string lines = "one\ttwo\n";
  for (const Pair& pair : file.pairs) lines += pair.source + "\t" + pair.target + "\n";
  const PairFile again = read_pairs(law::planted(lines, ".again.tsv"));
  law::demand(std::ranges::equal(std::span(again.pairs).subspan(1), file.pairs),
              "writing and reading keeps the pairs");
  return 0;
}
