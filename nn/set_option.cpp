// Lists options, sets them from text, and finds the known word nearest to an unknown one.
#include "heed/nn/set_option.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "heed/core/error.h"
#include "heed/core/io/ascii.h"
#include "heed/core/io/number_text.h"

namespace heed {
namespace {

constexpr size_t max_listed = 24;  // longer lists are shown by their groups

/// Damerau-Levenshtein distance, ignoring case: insertions, deletions, substitutions, swaps of neighbours.
size_t edit_distance(std::string_view a, std::string_view b) {
  // Row i of the table has the distances of the first i letters of a to each beginning of b.
  std::vector<size_t> two_rows_up, row_above, row(b.size() + 1);
  const auto equal = [&](size_t i, size_t j) { return ascii_lower(a[i - 1]) == ascii_lower(b[j - 1]); };
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    two_rows_up = std::move(row_above);
    row_above = row;
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({row_above[j] + 1, row[j - 1] + 1, row_above[j - 1] + (equal(i, j) ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && equal(i, j - 1) && equal(i - 1, j);
      if (swapped) row[j] = std::min(row[j], two_rows_up[j - 2] + 1);
    }
  }
  return row[b.size()];
}

/// The number of letters after leading dashes: 2 for --to.
size_t num_letters(std::string_view word) {
  return word.size() - std::min(word.find_first_not_of('-'), word.size());
}

/// The words joined by ", ", or by "; " when a word contains a comma.
std::string joined(std::span<const std::string> words) {
  const bool has_comma = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.find(',') != std::string::npos;
  });
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : has_comma ? "; " : ", ") + word;
  return out;
}

/// The distinct parts of names before their first dot: "train" of "train.seed". A dot before a digit is not
/// counted, since it belongs to a number.
std::vector<std::string> groups_of(std::span<const std::string> known) {
  std::vector<std::string> groups;
  for (const std::string& name : known) {
    size_t dot = name.find('.');
    while (dot != std::string::npos && dot + 1 < name.size() && is_ascii_digit(name[dot + 1]))
      dot = name.find('.', dot + 1);
    std::string group = name.substr(0, dot);
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> known) {
  std::string best;
  // At most two edits, and one in a short word: with two of three letters changed it is a different word.
  const size_t max_edits = std::clamp<size_t>(num_letters(word) / 3, 1, 2);
  size_t best_distance = max_edits + 1;
  for (const std::string& candidate : known) {
    // The edit distance is at least the difference of the lengths; skipping bounds the time for long words.
    if (word.size() >= candidate.size() + best_distance) continue;
    if (!word.empty() && candidate.ends_with(text(".", word))) return candidate;
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < std::min(num_letters(word), num_letters(candidate))) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, std::span<const std::string> known) {
  const std::string near = nearest(word, known);
  std::string out = near.empty() ? "" : " Did you mean '" + near + "'?";
  if (known.size() > max_listed) {
    if (!near.empty()) return out;
    const std::vector<std::string> groups = groups_of(known);
    return text(" There are ", known.size(), groups.size() < known.size() ? ", which begin with: " : ": ",
                joined(groups), ".");
  }
  return text(out, " Known: ", joined(known), ".");
}

namespace {

const std::string true_or_false = "true or false";  // the kind of a switch, and the start of a WordSet's

/// Lists all options under dotted names, with their values as text.
class OptionList : public Fields {
 public:
  std::vector<OptionText> options;

 protected:
  std::string path(const char* name) const { return prefix_ + name; }
  void on(const char* name, int64_t& option, const char* help) override {
    options.push_back({path(name), text(option), "integer", help});
  }
  void on(const char* name, int64_t& option, IntRange range, const char* help) override {
    OptionList::on(name, option, help);
    options.back().range = range;
  }
  void on(const char* name, double& option, const char* help) override {
    options.push_back({path(name), exact_number(option), "number", help});
  }
  void on(const char* name, std::optional<double>& option, const Followed& followed,
          const char* help) override {
    options.push_back({path(name), exact_number(option.value_or(followed.value)), "number", help,
                       option ? std::string() : path(followed.name)});
  }
  void on(const char* name, bool& option, const char* help) override {
    options.push_back({path(name), text(option), true_or_false, help});
  }
  void on(const char* name, std::string& option, const char* help) override {
    options.push_back({path(name), option, "text", help});
  }
  void on(const char* name, Choice& option, const char* help) override {
    std::string words;
    for (const char* word : option.words()) words += (words.empty() ? "" : "|") + std::string(word);
    options.push_back({path(name), option.word(), words, help});
  }
  void on(const char* name, WordSet& option, const char* help) override {
    options.push_back({path(name), option.text(), true_or_false + words_behind(option), help});
  }
  void enter(const char* name) override { prefix_ += std::string(name) + "."; }
  void leave() override {
    prefix_.pop_back();
    prefix_.erase(prefix_.rfind('.') + 1);  // all of it where there is no other dot: npos + 1 is 0
  }

 private:
  static std::string words_behind(const WordSet& option) {
    std::string words;
    for (const std::string& word : option.words()) words += (words.empty() ? "" : ",") + word;
    return ", or some of " + words;
  }
  std::string prefix_;  // names of the enclosing groups, each with its dot: "model."
};

/// Sets the option `name` to `value`, which it parses; `where` begins the messages of its errors.
class OptionSetter : public OptionList {
 public:
  OptionSetter(std::string name, std::string value, std::string where)
      : name_(std::move(name)), value_(std::move(value)), where_(std::move(where)) {}
  bool is_set = false;
  std::vector<std::string> known;  // dotted names of all visited options

 private:
  [[noreturn]] void refuse(const std::string& legal) const {
    fail(where_, name_, " = ", value_.empty() ? "''" : shown(value_), " is not legal; it takes ", legal, ".");
  }
  /// Adds the option to `known`; true, and is_set from then on, if it is the one to set.
  bool matches(const char* name) {
    known.push_back(path(name));
    if (known.back() != name_) return false;
    return is_set = true;
  }
  template <class T>
  T number(const std::string& legal) const {
    T parsed{};
    const char* end = value_.data() + value_.size();
    const auto [parsed_end, fault] = std::from_chars(value_.data(), end, parsed);
    if (fault != std::errc() || parsed_end != end) refuse(legal);
    return parsed;
  }
  double real() const {
    const auto parsed = number<double>("a number");
    if (!std::isfinite(parsed)) refuse("a finite number");
    return parsed;
  }
  void on(const char* name, int64_t& option, const char*) override {
    if (!matches(name)) return;
    option = number<int64_t>("a whole number");
    if (!name_.ends_with("seed") && (option > max_integer || option < -max_integer))
      refuse(text("a whole number from -", max_integer, " to ", max_integer));
  }
  void on(const char* name, int64_t& option, IntRange range, const char*) override {
    if (!matches(name)) return;
    const std::string legal = text("a whole number from ", range.min, " to ", range.max);
    const auto given = number<int64_t>(legal);
    if (given < range.min || given > range.max) refuse(legal);
    option = given;
  }
  void on(const char* name, double& option, const char*) override {
    if (matches(name)) option = real();
  }
  void on(const char* name, std::optional<double>& option, const Followed&, const char*) override {
    if (matches(name)) option = real();
  }
  void on(const char* name, bool& option, const char*) override {
    if (!matches(name)) return;
    if (value_ != "true" && value_ != "false") refuse("true or false");
    option = value_ == "true";
  }
  void on(const char* name, std::string& option, const char*) override {
    if (matches(name)) option = value_;
  }
  void on(const char* name, Choice& option, const char*) override {
    if (!matches(name) || option.choose(value_)) return;
    std::vector<std::string> words(option.words().begin(), option.words().end());
    fail(where_, name_, " = '", shown(value_), "' is unknown.", suggestion(value_, words));
  }
  void on(const char* name, WordSet& option, const char*) override {
    if (!matches(name)) return;
    const std::optional<std::string> unknown = option.choose(value_);
    if (!unknown) return;
    fail(where_, name_, " = '", shown(value_), "': '", shown(*unknown), "' is unknown.",
         suggestion(*unknown, option.words()), " Give some of them with commas between, or true or false.");
  }

  std::string name_, value_, where_;
};

}  // namespace

bool is_bare_in_toml(const OptionText& option) {
  if (option.kind == "integer" || option.kind == "number") return true;
  return option.kind.starts_with(true_or_false) && (option.value == "true" || option.value == "false");
}

std::string takes(const OptionText& option) {
  if (!option.range) return option.kind;
  return text(option.kind, " from ", option.range->min, " to ", option.range->max);
}

std::vector<OptionText> detail::options_of(const std::function<void(Fields&)>& fields) {
  OptionList listing;
  fields(listing);
  return std::move(listing.options);
}

void detail::set_option(const std::function<void(Fields&)>& fields, const std::string& name,
                        const std::string& value, const std::string& where) {
  OptionSetter setter(name, value, where);
  fields(setter);
  if (setter.is_set) return;
  const std::vector<std::string>& known = setter.known;
  if (known.empty()) fail(where, "'", shown(name), "' is unknown: there are no options here.");
  fail(where, "option '", shown(name), "' is unknown.", suggestion(name, known),
       known.size() > max_listed ? " heed show lists them." : "");
}

}  // namespace heed
