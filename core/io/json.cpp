// JSON: the grammar is read by nlohmann's event parser, the tree and the text are ours.
#include "heed/core/io/json.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "heed/core/io/number_text.h"

namespace heed {
namespace {

constexpr const char* kinds[] = {"null", "a boolean", "a number", "a number", "text", "a list", "an object"};

[[noreturn]] void wrong_kind(size_t index, const char* wanted) {
  fail(Fault::data, "JSON: ", kinds[index], " stands where ", wanted, " is needed");
}

/// The library's complaint without its code and place in front, and without bytes that a terminal may not
/// like.
std::string plain_words(std::string what) {
  for (const std::string_view mark : {"] ", "column "}) {
    if (const size_t at = what.find(mark); at != std::string::npos) what.erase(0, at + mark.size());
  }
  if (const size_t at = what.find_first_not_of("0123456789"); at > 0 && what.compare(at, 2, ": ") == 0) {
    what.erase(0, at + 2);
  }
  for (char& letter : what) {
    if (letter < ' ' || letter > '~') letter = '?';
  }
  constexpr size_t longest = 200;
  if (what.size() > longest) what.replace(longest / 2, what.size() - longest, " ... ");
  return what;
}

/// Walks over the text for the parser and keeps how far it has come.
class Cursor {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char*& furthest) : at_(at), furthest_(&furthest) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  Cursor operator++(int) {
    const Cursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char** furthest_;
};

/// Builds the tree from the parser's events and stops at the first thing that is refused.
class Builder {
 public:
  using Text = nlohmann::json::string_t;

  Builder(std::string_view text, const JsonLimits& limits)
      : text_(text), reached_(text.data()), limits_(limits) {
    limits_.memory += static_cast<int64_t>(text.size());
  }

  bool parse() {
    const char* end = text_.data() + text_.size();
    return nlohmann::json::sax_parse(Cursor(text_.data(), reached_), Cursor(end, reached_), this);
  }

  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(Json(value)); }
  bool number_integer(int64_t value) { return add(Json(value)); }
  bool number_unsigned(uint64_t value) {
    const bool fits = value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    return add(fits ? Json(static_cast<int64_t>(value)) : Json(static_cast<double>(value)));
  }
  bool number_float(double value, const Text&) { return add(Json(value)); }
  bool string(Text& value) { return add(Json(std::move(value))); }
  bool binary(nlohmann::json::binary_t&) { return refuse("binary data"); }
  bool start_array(size_t) { return open(Json(Json::List())); }
  bool end_array() { return close(); }
  bool start_object(size_t) { return open(Json::object()); }
  bool end_object() { return close(); }
  bool key(Text& value) {
    if (open_.back().keys.contains(value)) return refuse(text("the member '", shown(value), "' twice"));
    const int64_t cost = key_cost + on_heap(value);
    if (!spend(cost)) return false;
    open_.back().keys_cost += cost;
    open_.back().keys.insert(value);
    open_.back().key = std::move(value);
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) {
    where_ = text("byte ", static_cast<int64_t>(position));
    why_ = plain_words(error.what());
    return false;
  }

  std::string complaint() const { return text(where_, ": ", why_); }
  Json take() { return std::move(root_); }

 private:
  struct Open {
    Json value;
    std::string key;
    std::unordered_set<std::string> keys;
    int64_t keys_cost = 0;
  };

  static constexpr int64_t key_cost = 80;  // a node of the set with its bucket

  /// Bytes of a text beyond those of the object itself.
  static int64_t on_heap(const std::string& value) {
    return value.capacity() <= 15 ? 0 : static_cast<int64_t>(value.capacity()) + 1;
  }

  bool refuse(std::string why) {
    where_ = text("byte ", static_cast<int64_t>(reached_ - text_.data()));
    why_ = std::move(why);
    return false;
  }

  /// Counts memory before it is taken; `passing` is given back at once.
  bool spend(int64_t bytes, int64_t passing = 0) {
    spent_ += bytes;
    return spent_ + passing <= limits_.memory ||
           refuse(text("its values would take more than ", limits_.memory, " bytes of memory"));
  }

  /// One more item: a vector that is full doubles, and holds the old items meanwhile.
  template <class Items>
  bool spend_on(const Items& items) {
    if (items.size() < items.capacity()) return true;
    const auto size = static_cast<int64_t>(items.capacity() * sizeof(items[0]));
    return spend(std::max<int64_t>(size, sizeof(items[0])), size);
  }

  bool count() {
    return ++values_ <= limits_.values || refuse(text("more than ", limits_.values, " values"));
  }

  bool place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Open& within = open_.back();
    if (within.value.is_object()) {
      if (!spend_on(within.value.members()) || !spend(on_heap(within.key))) return false;
      within.value.append(std::move(within.key), std::move(value));
    } else {
      if (!spend_on(within.value.list())) return false;
      within.value.push(std::move(value));
    }
    return true;
  }

  bool add(Json value) {
    if (!count() || (value.is_text() && !spend(on_heap(value.text())))) return false;
    return place(std::move(value));
  }

  bool open(Json value) {
    if (!count()) return false;
    if (static_cast<int64_t>(open_.size()) >= limits_.depth) {
      return refuse(text("more than ", limits_.depth, " lists and objects within each other"));
    }
    open_.push_back({.value = std::move(value), .key = {}, .keys = {}, .keys_cost = 0});
    return true;
  }

  bool close() {
    Json value = std::move(open_.back().value);
    spent_ -= open_.back().keys_cost;
    open_.pop_back();
    return place(std::move(value));
  }

  std::string_view text_;
  const char* reached_;
  JsonLimits limits_;
  int64_t values_ = 0;
  int64_t spent_ = 0;
  std::vector<Open> open_;
  Json root_;
  std::string where_;
  std::string why_;
};

void dump_text(const std::string& value, std::string& out) {
  // The library escapes, and replaces what is not UTF-8 rather than refuse to write.
  out += nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void dump_real(double value, std::string& out) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const std::string digits = exact_number(value);
  out += digits;
  // A whole number keeps a sign of being real, so that it is read back as one.
  if (digits.find_first_of(".e") == std::string::npos) out += ".0";
}

void break_line(int indent, int depth, std::string& out) {
  if (indent < 0) return;
  out += '\n';
  out.append(static_cast<size_t>(indent * depth), ' ');
}

void dump_into(const Json& value, int indent, int depth, std::string& out) {
  if (value.is_object() || value.is_list()) {
    const bool object = value.is_object();
    bool first = true;
    out += object ? '{' : '[';
    const auto separate = [&] {
      if (!first) out += indent < 0 ? ", " : ",";
      first = false;
      break_line(indent, depth + 1, out);
    };
    if (object) {
      for (const JsonMember& member : value.members()) {
        separate();
        dump_text(member.key, out);
        out += ": ";
        dump_into(member.value, indent, depth + 1, out);
      }
    } else {
      for (const Json& item : value.list()) {
        separate();
        dump_into(item, indent, depth + 1, out);
      }
    }
    if (!first) break_line(indent, depth, out);
    out += object ? '}' : ']';
  } else if (value.is_text()) {
    dump_text(value.text(), out);
  } else if (value.is_integer()) {
    out += std::to_string(value.integer());
  } else if (value.is_number()) {
    dump_real(value.real(), out);
  } else {
    out += value.is_null() ? "null" : value.boolean() ? "true" : "false";
  }
}

}  // namespace

// Here, where the members of an object are a complete type.
Json::Json() = default;
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;
Json::Json(std::string value) : value_(std::move(value)) {}
Json::Json(std::string_view value) : value_(std::string(value)) {}
Json::Json(const char* value) : value_(std::string(value)) {}
Json::Json(List items) : value_(std::move(items)) {}

Json Json::object(std::initializer_list<std::pair<std::string_view, Json>> members) {
  Json made;
  made.value_ = Members();
  for (const auto& [key, value] : members) made.set(key, value);
  return made;
}

bool Json::boolean() const {
  if (const bool* held = std::get_if<bool>(&value_)) return *held;
  wrong_kind(value_.index(), "a boolean");
}

int64_t Json::integer() const {
  if (const int64_t* held = std::get_if<int64_t>(&value_)) return *held;
  wrong_kind(value_.index(), "a whole number");
}

double Json::real() const {
  if (is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (const int64_t* held = std::get_if<int64_t>(&value_)) return static_cast<double>(*held);
  if (const double* held = std::get_if<double>(&value_)) return *held;
  wrong_kind(value_.index(), "a number");
}

const std::string& Json::text() const {
  if (const std::string* held = std::get_if<std::string>(&value_)) return *held;
  wrong_kind(value_.index(), "text");
}

const Json::List& Json::list() const {
  if (const List* held = std::get_if<List>(&value_)) return *held;
  wrong_kind(value_.index(), "a list");
}

const Json::Members& Json::members() const {
  if (const Members* held = std::get_if<Members>(&value_)) return *held;
  wrong_kind(value_.index(), "an object");
}

const Json* Json::find(std::string_view key) const {
  for (const JsonMember& member : members()) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

const Json& Json::at(std::string_view key) const {
  if (const Json* found = find(key)) return *found;
  fail(Fault::data, "JSON: the member '", key, "' is missing");
}

Json& Json::set(std::string_view key, Json value) {
  if (is_null()) value_ = Members();
  Members* held = std::get_if<Members>(&value_);
  if (held == nullptr) wrong_kind(value_.index(), "an object");
  for (JsonMember& member : *held) {
    if (member.key == key) {
      member.value = std::move(value);
      return *this;
    }
  }
  return append(std::string(key), std::move(value));
}

Json& Json::append(std::string key, Json value) {
  std::get<Members>(value_).push_back({.key = std::move(key), .value = std::move(value)});
  return *this;
}

Json& Json::push(Json value) {
  if (is_null()) value_ = List();
  List* held = std::get_if<List>(&value_);
  if (held == nullptr) wrong_kind(value_.index(), "a list");
  held->push_back(std::move(value));
  return *this;
}

std::string Json::dump(int indent) const {
  std::string out;
  dump_into(*this, indent, 0, out);
  return out;
}

Json parse_json(std::string_view text, std::string_view name, const JsonLimits& limits) {
  Builder builder(text, limits);
  if (!builder.parse()) {
    fail(Fault::data, name, " is not the JSON it should be: ", builder.complaint(), ".");
  }
  return builder.take();
}

}  // namespace heed
