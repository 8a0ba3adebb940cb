// The table of `heed bench ops`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/core/random.h"
#include "heed/train/bench/measure.h"

namespace heed::bench {

/// Whether an op updates its input: then the written bytes are among those read.
enum class InPlace { no, yes };

/// Times the ops whose names contain a word, and adds a row for each to a table.
class Ops {
 public:
  Ops(Table& table, std::string word) : table_(table), word_(std::move(word)) {}

  /// Times run(), which processes `elements` numbers: it reads `reads` and writes `writes` numbers for each.
  void time(const char* name, int64_t elements, double reads, double writes, const std::function<void()>& run,
            InPlace in_place = InPlace::no);
  /// A usage error if no name contained the word.
  void check_found() const;

 private:
  Table& table_;
  std::string word_;
  std::vector<std::string> known_;
  bool found_ = false;
};

/// Normally distributed f32 numbers on the default device.
Tensor numbers(const Shape& shape, Rng& rng);

/// Reductions, sorting, gathering, segment means, tree nodes, recurrent cells, causal scans, and attention by
/// formulas of a program.
void sequence_ops(Ops& ops, Rng& rng);

}  // namespace heed::bench
