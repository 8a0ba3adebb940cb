// ListOps: generates and evaluates expressions.
#include "heed/data/synthetic/listops.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_set>

#include "heed/data/batching/shuffle.h"

namespace heed {
namespace {

constexpr int64_t max_arguments = 100;

/// The arguments of an operator as counts of each digit, which suffice to evaluate it.
class Arguments {
 public:
  void add(int64_t digit) {
    ++digit_counts_[static_cast<size_t>(digit)];
    ++count_;
    sum_ += digit;
  }
  int64_t count() const { return count_; }
  int64_t value(uint8_t op) const {
    switch (op) {
      case listops_min:
        return ranked(0);
      case listops_max:
        return ranked(count_ - 1);
      case listops_median:  // the median of an even number: the mean of the middle two, rounded down
        return (ranked((count_ - 1) / 2) + ranked(count_ / 2)) / 2;
      default:
        return sum_ % 10;
    }
  }

 private:
  /// The digit with this rank, from 0.
  int64_t ranked(int64_t rank) const {
    int64_t digit = 0;
    for (int64_t below = digit_counts_[0]; below <= rank; below += digit_counts_[static_cast<size_t>(digit)])
      ++digit;
    return digit;
  }

  std::array<int64_t, 10> digit_counts_{};
  int64_t count_ = 0, sum_ = 0;
};

/// Draws expressions of one random stream until one has a legal length.
class ExpressionDrawer {
 public:
  ExpressionDrawer(const ListOpsGrammar& grammar, uint64_t seed, uint64_t stream)
      : grammar_(grammar),
        seed_(seed),
        stream_(stream),
        operator_threshold_(static_cast<uint64_t>(grammar.operators * 0x1p32)) {}

  /// Draws expressions until `tokens` has a legal length; false when none of very many has.
  bool draw() {
    constexpr int64_t max_tries = 100000;
    for (int64_t tries = 0; tries < max_tries; ++tries) {
      tokens.clear();
      value = node(1);
      const auto length = static_cast<int64_t>(tokens.size());
      if (length > grammar_.shortest && length < grammar_.longest) return true;
    }
    return false;
  }

  std::string tokens;  ///< the expression of the last draw()
  int64_t value = 0;   ///< its value

 private:
  /// Appends a node and returns its value; stops early when the expression is too long.
  int64_t node(int64_t depth) {
    // The upper half of the random bits decides between digit and operator; the digit comes from the lower
    // half, or the operator from its upper two bits and the number of arguments from the other 30.
    const uint64_t bits = counter_bits(seed_, stream_, counter_++);
    const uint64_t low = bits & 0xFFFFFFFF;
    if (depth >= grammar_.depth || (bits >> 32) >= operator_threshold_) {
      const auto digit = static_cast<int64_t>((low * 10) >> 32);
      tokens += static_cast<char>(listops_digit + digit);
      return digit;
    }
    const auto op = static_cast<uint8_t>(listops_min + (low >> 30));
    const auto count =
        2 + static_cast<int64_t>(((low & 0x3FFFFFFF) * static_cast<uint64_t>(grammar_.arguments - 1)) >> 30);
    tokens += static_cast<char>(op);
    Arguments arguments;
    for (int64_t i = 0; i < count; ++i) {
      if (static_cast<int64_t>(tokens.size()) >= grammar_.longest) return 0;
      arguments.add(node(depth + 1));
    }
    tokens += static_cast<char>(listops_close);
    return arguments.value(op);
  }

  const ListOpsGrammar& grammar_;
  uint64_t seed_, stream_, counter_ = 0;
  uint64_t operator_threshold_;  // 2^32 times the probability of an operator
};

/// A 64-bit hash of a string; two different strings collide with a probability of about 2^-64.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = text.size();
  uint64_t word = 0;
  for (size_t offset = 0; offset < text.size(); offset += sizeof word) {
    word = 0;
    std::memcpy(&word, text.data() + offset, std::min(sizeof word, text.size() - offset));
    hash = counter_bits(hash, word, offset);
  }
  return hash;
}

/// Fails for options out of range.
void check(int64_t count, const ListOpsGrammar& grammar) {
  const auto outside = [](const char* name, auto value, const char* legal) {
    fail("listops: ", name, " = ", value, ". It must be ", legal, ".");
  };
  if (count < 1 || count > 10'000'000) outside("the number of expressions", count, "1 to 10000000");
  if (grammar.depth < 2 || grammar.depth > 100) outside("depth", grammar.depth, "2 to 100");
  if (grammar.arguments < 2 || grammar.arguments > max_arguments)
    outside("arguments", grammar.arguments, "2 to 100");
  if (!(grammar.operators > 0 && grammar.operators < 1))
    outside("operators", grammar.operators, "above 0 and below 1");
  if (grammar.shortest < 1 || grammar.longest < grammar.shortest + 2 || grammar.longest > 1'000'000) {
    fail("listops: more than ", grammar.shortest, " and fewer than ", grammar.longest,
         " tokens. Give at least 1 and at most 1000000, with room for one length between them.");
  }
}

}  // namespace

Sequences listops(int64_t count, uint64_t seed, const ListOpsGrammar& grammar,
                  const ProgressCallback& on_progress) {
  check(count, grammar);
  Sequences out;
  std::unordered_set<uint64_t> seen;
  uint64_t first_stream = 0;  // stream of a batch's first expression; each has its own
  int64_t num_fruitless = 0;  // consecutive batches without a new expression
  while (out.count() < count) {
    // A batch draws as many expressions as are missing; streams are used in order, so its size does not
    // matter.
    const int64_t batch = std::clamp<int64_t>(count - out.count(), 64, 16384);
    std::vector<std::string> drawn(static_cast<size_t>(batch));
    std::vector<uint64_t> hashes(static_cast<size_t>(batch));
    std::vector<uint8_t> values(static_cast<size_t>(batch));
    const ProgressCallback on_batch_progress =
        on_progress
            ? ProgressCallback([&](int64_t done) { on_progress(std::min(out.count() + done, count)); })
            : on_progress;
    parallel_rows_with_progress(batch, 16, on_batch_progress, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        ExpressionDrawer drawer(grammar, seed, first_stream + static_cast<uint64_t>(i));
        if (!drawer.draw()) continue;
        const auto index = static_cast<size_t>(i);
        hashes[index] = hash_of(drawer.tokens);
        values[index] = static_cast<uint8_t>(drawer.value);
        drawn[index] = std::move(drawer.tokens);
      }
    });
    const int64_t count_before = out.count();
    for (size_t i = 0; i < drawn.size() && out.count() < count; ++i) {
      if (drawn[i].empty() || !seen.insert(hashes[i]).second) continue;
      out.add(drawn[i]);
      out.labels.push_back(values[i]);
    }
    num_fruitless = out.count() == count_before ? num_fruitless + 1 : 0;
    if (num_fruitless == 64) {
      fail("listops: ", count, " different expressions of ", grammar.shortest + 1, " to ",
           grammar.longest - 1, " tokens, but the grammar (depth ", grammar.depth, ", arguments ",
           grammar.arguments, ", operators ", grammar.operators, ") gave no more than ", count_before,
           ". Ask for fewer, or widen the grammar.");
    }
    first_stream += static_cast<uint64_t>(batch);
  }
  return out;
}

// Keeps open operators on a stack of its own instead of recursing, since expressions of files may nest
// deeply.
int64_t listops_value(std::string_view tokens, int64_t max_levels) {
  struct OpenOperator {
    uint8_t op;
    Arguments arguments;
  };
  constexpr int64_t guesses[] = {0, 9, 4, 5};  // values of MIN, MAX, MED and SM
  std::vector<OpenOperator> open;
  const auto fail_at = [](size_t token, const char* fault) { fail(Fault::data, "token ", token + 1, fault); };
  for (size_t at = 0; at < tokens.size(); ++at) {
    const auto token = static_cast<uint8_t>(tokens[at]);
    int64_t value = 0;
    if (token >= listops_min && token <= listops_sum) {
      open.push_back({token, {}});
      continue;
    }
    if (token == listops_close) {
      if (open.empty() || open.back().arguments.count() == 0)
        fail_at(at, " closes an operator that is not there, or has no arguments");
      const auto level = static_cast<int64_t>(open.size());
      value = level > max_levels ? guesses[open.back().op - listops_min]
                                 : open.back().arguments.value(open.back().op);
      open.pop_back();
    } else if (token >= listops_digit && token < listops_vocabulary) {
      value = token - listops_digit;
    } else {
      fail_at(at, " is none");
    }
    if (!open.empty()) {
      open.back().arguments.add(value);
      continue;
    }
    if (at + 1 < tokens.size()) fail_at(at + 1, " follows the end of the expression");
    return value;
  }
  fail_at(tokens.size(), " is missing: the expression does not end");
  return 0;
}

}  // namespace heed
