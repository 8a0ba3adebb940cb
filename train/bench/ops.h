// The table of heed bench ops.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/random.h"
#include "train/bench/measure.h"

namespace heed::bench {

enum class InPlace { no, yes };

/// Times ops whose name has the word asked for.
class Ops {
 public:
  Ops(Table& table, std::string word) : table_(table), word_(std::move(word)) {}

  /// Times work() on `elements` numbers, of which it must read and write so many times all.
  void time(const char* name, int64_t elements, double reads, double writes,
            const std::function<void()>& work, InPlace in_place = InPlace::no);
  /// Fails where no op had the word.
  void check_found() const;

 private:
  Table& table_;
  std::string word_;
  std::vector<std::string> known_;
  bool found_ = false;
};

/// Normal numbers, f32, on the default device.
Tensor numbers(const Shape& shape, Rng& rng);

/// Sums and maxima, orders, rows by index, averages of runs, nodes of a tree, cells and causal scans.
void sequence_ops(Ops& ops, Rng& rng);

}  // namespace heed::bench
