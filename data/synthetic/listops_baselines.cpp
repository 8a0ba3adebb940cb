// Baselines of ListOps.
#include <algorithm>
#include <map>

#include "heed/data/synthetic/listops.h"

namespace heed {
namespace {

/// The root operator of an expression; 0 where it is a digit.
int64_t root_operator(std::string_view tokens) {
  const auto root = tokens.empty() ? uint8_t{0} : static_cast<uint8_t>(tokens[0]);
  return root > listops_sum ? 0 : root;
}

/// A number for the root operator, its value over its direct digits alone, and its number of other arguments.
int64_t root_and_digits(std::string_view tokens) {
  const int64_t op = root_operator(tokens);
  if (op == 0) return 0;
  constexpr int64_t no_digits = 10, max_subtrees = 7;
  std::string without_subtrees(1, tokens[0]);
  int64_t depth = 0, subtrees = 0;
  for (const char token : tokens) {
    const auto id = static_cast<uint8_t>(token);
    if (id <= listops_sum) {
      subtrees += depth == 1 ? 1 : 0;
      ++depth;
    } else if (id == listops_close) {
      --depth;
    } else if (depth == 1) {
      without_subtrees += token;
    }
  }
  without_subtrees += static_cast<char>(listops_close);
  const int64_t value = without_subtrees.size() > 2 ? listops_value(without_subtrees) : no_digits;
  return op + 8 * (value + 16 * std::min(subtrees, max_subtrees));  // op is below 8, the value below 16
}

/// Accuracy on `test_set` of a table that gives each key its most frequent label in `train_set`.
template <class Key>
double table_accuracy(const Sequences& train_set, const Sequences& test_set, Key key) {
  std::map<int64_t, std::array<int64_t, 10>> table;
  std::array<int64_t, 10> label_counts{};  // for keys that train_set lacks
  for (int64_t i = 0; i < train_set.count(); ++i) {
    const uint8_t label = train_set.labels[static_cast<size_t>(i)];
    ++table[key(train_set.at(i))][label];
    ++label_counts[label];
  }
  return accuracy_of(test_set, [&](int64_t i) {
    const auto found = table.find(key(test_set.at(i)));
    const std::array<int64_t, 10>& counts = found == table.end() ? label_counts : found->second;
    return std::max_element(counts.begin(), counts.end()) - counts.begin();
  });
}

}  // namespace

std::vector<Baseline> listops_baselines(const Sequences& train_set, const Sequences& test_set,
                                        int64_t max_levels) {
  std::vector<Baseline> out{
      {"majority", majority(train_set, test_set)},
      {"root operator", table_accuracy(train_set, test_set, root_operator)},
      {"root operator and its digits", table_accuracy(train_set, test_set, root_and_digits)}};
  for (int64_t levels = 1; levels <= max_levels; ++levels) {
    const auto predict = [&](int64_t i) { return listops_value(test_set.at(i), levels); };
    out.push_back({text(levels, levels == 1 ? " level" : " levels"), accuracy_of(test_set, predict)});
  }
  return out;
}

}  // namespace heed
