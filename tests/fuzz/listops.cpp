// Fuzz target: files of ListOps.
#include "heed/data/synthetic/listops.h"

#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  const Path path = law::planted(input, ".tsv");
  Sequences set;
  if (law::obeys(path.string(), input, [&] { set = read_listops(path); }, {.per_byte = 200})) {
    for (int64_t i = 0; i < set.count(); ++i) {
      const int64_t label = set.labels[static_cast<size_t>(i)];
      law::demand(listops_value(set.at(i)) == label, "a label is the value");
      const Sequences again = read_listops(law::planted(listops_line(set.at(i), label), ".again"));
      law::demand(again.at(0) == set.at(i), "what is written is read");
    }
  }
  return 0;
}
