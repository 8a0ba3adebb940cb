// Texts of parameter groups, and which group a parameter belongs to.
#include "heed/train/optim/parameter_groups.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "heed/core/io/ascii.h"
#include "heed/core/io/number_text.h"
#include "heed/nn/set_option.h"

namespace heed {
namespace {

/// Whether `name` is what `pattern` says, with * for any letters and ? for one.
bool matches(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = pattern.npos, retry = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != pattern.npos) {  // the last * takes one letter more
      p = star + 1;
      n = ++retry;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

/// How many letters of `name` to insert, delete or replace until it is what `pattern` says.
size_t edits_to_match(std::string_view pattern, std::string_view name) {
  std::vector<size_t> row(name.size() + 1);  // distances of the beginnings of name to that of pattern so far
  std::iota(row.begin(), row.end(), size_t{0});
  for (const char p : pattern) {
    size_t diagonal = row[0];
    row[0] += p == '*' ? 0 : 1;
    for (size_t j = 1; j <= name.size(); ++j) {
      const size_t above = std::exchange(
          row[j], p == '*' ? std::min(row[j], row[j - 1])
                           : std::min({row[j] + 1, row[j - 1] + 1,
                                       diagonal + (p == '?' || p == name[j - 1] ? size_t{0} : size_t{1})}));
      diagonal = above;
    }
  }
  return row.back();
}

/// Calls f with each part of `text` between separators, without the blanks around it.
template <class F>
void each_part(std::string_view text, char separator, F f) {
  while (true) {
    const size_t end = text.find(separator);
    f(without_blanks(text.substr(0, end)));
    if (end == text.npos) return;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

void ParameterGroup::fields(Fields& f) {
  f("weight_decay", weight_decay, Followed{"weight_decay", 0}, "weight decay of all parameters of the group");
  f("rate", rate, "factor on the learning rate");
  f("frozen", frozen, "leave the parameters as they are");
  f("update", Choice(update, {"by_kind", "muon", "adamw"}),
    "optimizer = muon: the rule of these parameters; by_kind: muon for matrices between hidden states");
}

std::string to_string(const std::vector<ParameterGroup>& groups) {
  std::string out;
  for (const ParameterGroup& group : groups) {
    out += (out.empty() ? "" : "; ") + group.match + ":";
    if (group.weight_decay) out += " weight_decay=" + exact_number(*group.weight_decay) + ",";
    if (group.rate != 1) out += " rate=" + exact_number(group.rate) + ",";
    if (group.frozen) out += " frozen=true,";
    if (group.update == GroupUpdate::muon) out += " update=muon,";
    if (group.update == GroupUpdate::adamw) out += " update=adamw,";
    if (out.ends_with(':')) out += " rate=1";
    if (out.ends_with(',')) out.pop_back();
  }
  return out;
}

std::vector<ParameterGroup> parse_groups(const std::string& groups, const std::string& where) {
  std::vector<ParameterGroup> out;
  if (without_blanks(groups).empty()) return out;
  each_part(groups, ';', [&](std::string_view group_text) {
    const size_t colon = group_text.find(':');
    const std::string match(without_blanks(group_text.substr(0, colon)));
    if (match.empty() || colon == group_text.npos)
      fail(where, "'", shown(group_text),
           "' is no group of parameters. Write NAMES: key=value, key=value; such as \"*.bias: "
           "weight_decay=0\".");
    ParameterGroup& group = out.emplace_back(ParameterGroup{.match = match});
    bool has_options = false;
    each_part(group_text.substr(colon + 1), ',', [&](std::string_view option) {
      if (option.empty()) return;
      has_options = true;
      const size_t equals = option.find('=');
      if (equals == option.npos)
        fail(where, "'", shown(option), "' of the group ", shown(match), " is not key=value.");
      set_option(group, std::string(without_blanks(option.substr(0, equals))),
                 std::string(without_blanks(option.substr(equals + 1))),
                 text(where, "group ", shown(match), ": "));
    });
    if (!has_options)
      fail(where, "the group ", shown(match),
           " has no options. Give one, such as weight_decay=0; rate=1 trains ",
           "its parameters as those of no group.");
  });
  return out;
}

void check_groups(const std::vector<ParameterGroup>& groups) {
  const auto check = [](const ParameterGroup& group, const char* what, double value) {
    if (!(value >= 0 && std::isfinite(value)))
      fail("parameter group ", shown(group.match), ": ", what, " = ", value, ". It must be at least 0.");
  };
  for (const ParameterGroup& group : groups) {
    check(group, "rate", group.rate);
    check(group, "weight_decay", group.weight_decay.value_or(0));
    if (group.match.empty()) fail("a parameter group has no name. Set ParameterGroup::match.");
    if (group.match.find_first_of(";:") != group.match.npos)
      fail("parameter group ", shown(group.match), ": its name contains ';' or ':'. Leave them out.");
  }
}

int64_t group_of(const std::vector<ParameterGroup>& groups, const std::string& name,
                 const Tensor& parameter) {
  for (size_t i = 0; i < groups.size(); ++i) {
    const ParameterGroup& group = groups[i];
    const bool is_pattern = !group.predicate || group.match.find_first_of("*?") != group.match.npos;
    if ((!is_pattern || matches(group.match, name)) && (!group.predicate || group.predicate(name, parameter)))
      return static_cast<int64_t>(i);
  }
  return -1;
}

std::vector<std::string> names_near(const std::string& pattern, const std::vector<std::string>& names,
                                    size_t count) {
  std::vector<std::pair<size_t, std::string>> by_distance;
  for (const std::string& name : names) by_distance.emplace_back(edits_to_match(pattern, name), name);
  std::ranges::stable_sort(by_distance, {}, &std::pair<size_t, std::string>::first);
  std::vector<std::string> out;
  for (const auto& [letters, name] : by_distance)
    if (out.size() < count) out.push_back(name);
  return out;
}

}  // namespace heed
