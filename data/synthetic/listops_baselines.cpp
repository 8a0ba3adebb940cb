// Baselines of ListOps.
#include <algorithm>
#include <map>

#include "heed/data/synthetic/listops.h"

namespace heed {
namespace {

/// A key of the root operator and, with `digits`, its direct digits: their value and the number of subtrees.
int64_t root_and_digits(std::string_view tokens, bool digits) {
  if (tokens.empty() || static_cast<uint8_t>(tokens[0]) > listops_sum) return 0;
  const auto op = static_cast<uint8_t>(tokens[0]);
  if (!digits) return op;
  std::string direct(1, tokens[0]);
  int64_t depth = 0, subtrees = 0;
  for (const char token : tokens) {
    const auto id = static_cast<uint8_t>(token);
    if (id <= listops_sum) {
      subtrees += depth == 1 ? 1 : 0;
      ++depth;
    } else if (id == listops_close) {
      --depth;
    } else if (depth == 1) {
      direct += token;
    }
  }
  direct += static_cast<char>(listops_close);
  const int64_t value = direct.size() > 2 ? listops_value(direct) : 10;
  return op + 8 * (value + 16 * std::min<int64_t>(subtrees, 7));
}

/// Accuracy on `test_set` of a table from key to the most frequent label in `train_set`.
template <class Key>
double looked_up(const Sequences& train_set, const Sequences& test_set, Key key) {
  std::map<int64_t, std::array<int64_t, 10>> table;
  std::array<int64_t, 10> all{};
  for (int64_t i = 0; i < train_set.count(); ++i) {
    const uint8_t label = train_set.labels[static_cast<size_t>(i)];
    ++table[key(train_set.at(i))][label];
    ++all[label];
  }
  const auto best = [](const std::array<int64_t, 10>& times) {
    return std::max_element(times.begin(), times.end()) - times.begin();
  };
  return accuracy_of(test_set, [&](int64_t i) {
    const auto found = table.find(key(test_set.at(i)));
    return best(found == table.end() ? all : found->second);
  });
}

}  // namespace

std::vector<Baseline> listops_baselines(const Sequences& train_set, const Sequences& test_set,
                                        int64_t levels) {
  std::vector<Baseline> out;
  out.push_back({"majority", majority(train_set, test_set)});
  out.push_back({"root operator", looked_up(train_set, test_set, [](std::string_view tokens) {
                   return root_and_digits(tokens, false);
                 })});
  out.push_back({"root operator and its digits", looked_up(train_set, test_set, [](std::string_view tokens) {
                   return root_and_digits(tokens, true);
                 })});
  for (int64_t level = 1; level <= levels; ++level) {
    const auto predict = [&](int64_t i) { return listops_value(test_set.at(i), level); };
    out.push_back({text(level, level == 1 ? " level" : " levels"), accuracy_of(test_set, predict)});
  }
  return out;
}

}  // namespace heed
