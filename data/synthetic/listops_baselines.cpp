// What little knowledge scores on ListOps.
#include <algorithm>
#include <map>

#include "data/listops.h"

namespace heed {
namespace {

/// The root operator, and what its direct digits say: their own value, and how many subtrees are beside them.
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

/// The share of `asked` that a table from key to the commonest label of `known` gets right.
template <class Key>
double looked_up(const Sequences& known, const Sequences& asked, Key key) {
  std::map<int64_t, std::array<int64_t, 10>> table;
  std::array<int64_t, 10> all{};
  for (int64_t i = 0; i < known.count(); ++i) {
    const uint8_t label = known.labels[static_cast<size_t>(i)];
    ++table[key(known.at(i))][label];
    ++all[label];
  }
  const auto best = [](const std::array<int64_t, 10>& times) {
    return std::max_element(times.begin(), times.end()) - times.begin();
  };
  int64_t right = 0;
  for (int64_t i = 0; i < asked.count(); ++i) {
    const auto found = table.find(key(asked.at(i)));
    right += best(found == table.end() ? all : found->second) == asked.labels[static_cast<size_t>(i)] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(std::max<int64_t>(asked.count(), 1));
}

}  // namespace

std::vector<Anchor> listops_anchors(const Sequences& known, const Sequences& asked, int64_t levels) {
  std::vector<Anchor> out;
  out.push_back({"majority", looked_up(known, asked, [](std::string_view) { return 0; })});
  out.push_back({"root operator", looked_up(known, asked, [](std::string_view tokens) {
                   return root_and_digits(tokens, false);
                 })});
  out.push_back({"root operator and its digits", looked_up(known, asked, [](std::string_view tokens) {
                   return root_and_digits(tokens, true);
                 })});
  for (int64_t level = 1; level <= levels; ++level) {
    int64_t right = 0;
    for (int64_t i = 0; i < asked.count(); ++i)
      right += listops_value(asked.at(i), level) == asked.labels[static_cast<size_t>(i)] ? 1 : 0;
    out.push_back({text(level, level == 1 ? " level" : " levels"),
                   static_cast<double>(right) / static_cast<double>(std::max<int64_t>(asked.count(), 1))});
  }
  return out;
}

}  // namespace heed
