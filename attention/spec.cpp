// Parsing of specs, setting of options by name, suggestions for unknown names.
#include "heed/attention/spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "heed/core/error.h"
#include "heed/core/io/number_text.h"

namespace heed {

Spec parse_spec(std::string_view text) {
  Spec spec;
  const size_t colon = text.find(':');
  spec.name = std::string(text.substr(0, colon));
  if (spec.name.empty()) fail("attention '", text, "' has no name. Write name or name:key=value,key=value.");
  if (colon == std::string_view::npos) return spec;
  std::string_view rest = text.substr(colon + 1);
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      fail("attention '", text, "': '", part, "' is not key=value. Write name:key=value,key=value.");
    }
    const std::string key(part.substr(0, equals));
    for (const auto& [other, value] : spec.options) {
      if (other == key) fail("attention '", text, "': ", key, " is given twice. Give it once.");
    }
    spec.options.emplace_back(key, part.substr(equals + 1));
    if (comma == std::string_view::npos) break;
    rest = rest.substr(comma + 1);
  }
  return spec;
}

std::string to_string(const Spec& spec) {
  std::string out = spec.name;
  char separator = ':';
  for (const auto& [key, value] : spec.options) {
    out += separator + key + "=" + value;
    separator = ',';
  }
  return out;
}

namespace {

constexpr size_t max_listed = 24;  // longer lists are shown by their groups

char small(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter; }

/// Edit distance of two words, ignoring case: insertions, deletions, substitutions, swaps of neighbours.
size_t edits(std::string_view a, std::string_view b) {
  std::vector<size_t> before, above, row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::move(above);
    above = row;
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = small(a[i - 1]) == small(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      const bool exchanged =
          i > 1 && j > 1 && small(a[i - 1]) == small(b[j - 2]) && small(a[i - 2]) == small(b[j - 1]);
      if (exchanged) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

/// The number of letters after leading dashes: 2 for --to.
size_t letters_of(std::string_view word) {
  return word.size() - std::min(word.find_first_not_of('-'), word.size());
}

/// The words joined by ", ", or by "; " when a word contains a comma.
std::string listed(std::span<const std::string> words) {
  const bool commas = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.find(',') != std::string::npos;
  });
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : commas ? "; " : ", ") + word;
  return out;
}

/// The distinct first parts of dotted names. A dot before a digit separates nothing.
std::vector<std::string> groups_of(std::span<const std::string> known) {
  std::vector<std::string> groups;
  for (const std::string& name : known) {
    size_t dot = name.find('.');
    while (dot != std::string::npos && dot + 1 < name.size() && name[dot + 1] >= '0' && name[dot + 1] <= '9')
      dot = name.find('.', dot + 1);
    std::string group = name.substr(0, dot);
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> known) {
  std::string best;
  // At most two edits, and of a short word at most one: two letters of three make another word.
  size_t distance = std::clamp<size_t>(letters_of(word) / 3, 1, 2) + 1;
  for (const std::string& candidate : known) {
    // The edit distance is at least the difference of the lengths; skipping bounds the time for long words.
    if (word.size() >= candidate.size() + distance) continue;
    if (!word.empty() && candidate.ends_with(text(".", word))) return candidate;
    const size_t d = edits(word, candidate);
    if (d < distance && d < std::min(letters_of(word), letters_of(candidate))) {
      distance = d;
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
                listed(groups), ".");
  }
  return text(out, " Known: ", listed(known), ".");
}

namespace {

/// Lists all options with their values, under dotted names.
class OptionTable : public Fields {
 public:
  std::vector<OptionText> found;

 protected:
  std::string path(const char* name) const { return prefix_ + name; }
  void on(const char* name, int64_t& x, const char* help) override {
    found.push_back({path(name), text(x), "integer", help});
  }
  void on(const char* name, int64_t& x, IntRange range, const char* help) override {
    OptionTable::on(name, x, help);
    found.back().range = range;
  }
  void on(const char* name, double& x, const char* help) override {
    found.push_back({path(name), exact_number(x), "number", help});
  }
  void on(const char* name, std::optional<double>& x, const Followed& followed, const char* help) override {
    found.push_back({path(name), exact_number(x.value_or(followed.value)), "number", help,
                     x ? std::string() : path(followed.name)});
  }
  void on(const char* name, bool& x, const char* help) override {
    found.push_back({path(name), text(x), "true or false", help});
  }
  void on(const char* name, std::string& x, const char* help) override {
    found.push_back({path(name), x, "text", help});
  }
  void on(const char* name, Choice& x, const char* help) override {
    std::string words;
    for (const char* word : x.words()) words += (words.empty() ? "" : "|") + std::string(word);
    found.push_back({path(name), x.word(), words, help});
  }
  void enter(const char* name) override { prefix_ += std::string(name) + "."; }
  void leave() override {
    prefix_.pop_back();
    prefix_.erase(prefix_.rfind('.') == std::string::npos ? 0 : prefix_.rfind('.') + 1);
  }

 private:
  std::string prefix_;
};

/// Sets the option of one name to a value given as text.
class Setting : public OptionTable {
 public:
  Setting(std::string name, std::string value, std::string where)
      : name_(std::move(name)), value_(std::move(value)), where_(std::move(where)) {}
  bool is_done = false;
  std::vector<std::string> known;  // names of all options

 private:
  [[noreturn]] void refuse(const std::string& needed) const {
    fail(where_, name_, " = ", value_.empty() ? "''" : shown(value_), " is not legal; it takes ", needed,
         ".");
  }
  /// True for the option to set.
  bool matches(const char* name) {
    known.push_back(path(name));
    if (known.back() != name_) return false;
    return is_done = true;
  }
  template <class T>
  T number(const std::string& needed) const {
    T parsed{};
    const char* end = value_.data() + value_.size();
    const auto [at, fault] = std::from_chars(value_.data(), end, parsed);
    if (fault != std::errc() || at != end) refuse(needed);
    return parsed;
  }
  double real() const {
    const auto x = number<double>("a number");
    if (!std::isfinite(x)) refuse("a finite number");
    return x;
  }
  void on(const char* name, int64_t& x, const char*) override {
    if (!matches(name)) return;
    x = number<int64_t>("a whole number");
    if (!name_.ends_with("seed") && (x > max_integer || x < -max_integer))
      refuse(text("a whole number from -", max_integer, " to ", max_integer));
  }
  void on(const char* name, int64_t& x, IntRange range, const char*) override {
    if (!matches(name)) return;
    const std::string needed = text("a whole number from ", range.min, " to ", range.max);
    const auto given = number<int64_t>(needed);
    if (given < range.min || given > range.max) refuse(needed);
    x = given;
  }
  void on(const char* name, double& x, const char*) override {
    if (matches(name)) x = real();
  }
  void on(const char* name, std::optional<double>& x, const Followed&, const char*) override {
    if (matches(name)) x = real();
  }
  void on(const char* name, bool& x, const char*) override {
    if (!matches(name)) return;
    if (value_ != "true" && value_ != "false") refuse("true or false");
    x = value_ == "true";
  }
  void on(const char* name, std::string& x, const char*) override {
    if (matches(name)) x = value_;
  }
  void on(const char* name, Choice& x, const char*) override {
    if (!matches(name) || x.choose(value_)) return;
    std::vector<std::string> words(x.words().begin(), x.words().end());
    fail(where_, name_, " = '", shown(value_), "' is unknown.", suggestion(value_, words));
  }

  std::string name_, value_, where_;
};

}  // namespace

std::string takes(const OptionText& option) {
  if (!option.range) return option.kind;
  return text(option.kind, " from ", option.range->min, " to ", option.range->max);
}

std::vector<OptionText> detail::options_of(const std::function<void(Fields&)>& fields) {
  OptionTable listing;
  fields(listing);
  return std::move(listing.found);
}

void detail::set_option(const std::function<void(Fields&)>& fields, const std::string& name,
                        const std::string& value, const std::string& where) {
  Setting setting(name, value, where);
  fields(setting);
  if (setting.is_done) return;
  const std::vector<std::string>& known = setting.known;
  if (known.empty()) fail(where, "'", shown(name), "' is unknown: there are no options here.");
  fail(where, "option '", shown(name), "' is unknown.", suggestion(name, known),
       known.size() > max_listed ? " heed show lists them." : "");
}

}  // namespace heed
