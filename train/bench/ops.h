// The table of `heed bench ops`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/core/random.h"
#include "heed/train/bench/measure.h"

namespace heed::bench {

/// Whether an op overwrites its input.
enum class InPlace { no, yes };

/// Times ops whose name contains a word.
class Ops {
 public:
  Ops(Table& table, std::string word) : table_(table), word_(std::move(word)) {}

  /// Times work() on `elements` numbers, all of which it reads `reads` times and writes `writes` times.
  void time(const char* name, int64_t elements, double reads, double writes,
            const std::function<void()>& work, InPlace in_place = InPlace::no);
  /// A usage error when no op's name contained the word.
  void check_found() const;

 private:
  Table& table_;
  std::string word_;
  std::vector<std::string> known_;
  bool found_ = false;
};

/// Normally distributed f32 numbers on the default device.
Tensor numbers(const Shape& shape, Rng& rng);

/// Reductions, sorting, gathering, segment means, tree nodes, recurrent cells and causal scans.
void sequence_ops(Ops& ops, Rng& rng);

}  // namespace heed::bench
