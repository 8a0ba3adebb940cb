// JSON: nlohmann's parser reads the grammar; this file has the tree of values and the writer.
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

/// The library's error message without the code and place at its beginning, limited to printable ASCII.
std::string plain_message(std::string what) {
  for (const std::string_view mark : {"] ", "column "}) {
    if (const size_t at = what.find(mark); at != std::string::npos) what.erase(0, at + mark.size());
  }
  if (const size_t at = what.find_first_not_of("0123456789"); at > 0 && what.compare(at, 2, ": ") == 0) {
    what.erase(0, at + 2);
  }
  for (char& letter : what) {
    if (letter < ' ' || letter > '~') letter = '?';
  }
  constexpr size_t max_bytes = 200;
  if (what.size() > max_bytes) what.replace(max_bytes / 2, what.size() - max_bytes, " ... ");
  return what;
}

/// An iterator over the text that records how far the parser has read.
class ReadPosition {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  ReadPosition(const char* at, const char*& furthest) : at_(at), furthest_(&furthest) {}
  reference operator*() const { return *at_; }
  ReadPosition& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  ReadPosition operator++(int) {
    const ReadPosition before = *this;
    ++*this;
    return before;
  }
  bool operator==(const ReadPosition& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char** furthest_;
};

/// Builds the tree of values from the parser's events (nlohmann's SAX interface). Each event returns false,
/// which stops the parser, at the first error.
class TreeBuilder {
 public:
  using Text = nlohmann::json::string_t;

  TreeBuilder(std::string_view text, const JsonLimits& limits)
      : text_(text), reached_(text.data()), limits_(limits) {
    limits_.memory += static_cast<int64_t>(text.size());
  }

  bool parse() {
    const char* end = text_.data() + text_.size();
    return nlohmann::json::sax_parse(ReadPosition(text_.data(), reached_), ReadPosition(end, reached_), this);
  }

  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(int64_t value) { return add(value); }
  bool number_unsigned(uint64_t value) {
    return std::in_range<int64_t>(value) ? add(value) : add(static_cast<double>(value));
  }
  bool number_float(double value, const Text&) { return add(value); }
  bool string(Text& value) { return add(std::move(value)); }
  bool binary(nlohmann::json::binary_t&) { return refuse("binary data"); }
  bool start_array(size_t) { return open(Json::List()); }
  bool end_array() { return close(); }
  bool start_object(size_t) { return open(Json::object()); }
  bool end_object() { return close(); }
  bool key(Text& value) {
    if (open_.back().keys.contains(value)) return refuse(text("the member '", shown(value), "' twice"));
    const int64_t bytes = key_bytes + on_heap(value);
    if (!reserve(bytes)) return false;
    open_.back().keys_bytes += bytes;
    open_.back().keys.insert(value);
    open_.back().key = std::move(value);
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) {
    position_ = static_cast<int64_t>(position);
    reason_ = plain_message(error.what());
    return false;
  }

  std::string error() const { return text("byte ", position_, ": ", reason_); }
  Json take() { return std::move(root_); }

 private:
  struct Open {
    Json value;
    std::string key;
    std::unordered_set<std::string> keys;
    int64_t keys_bytes = 0;  // memory of `keys`
  };

  static constexpr int64_t key_bytes = 80;  // memory of a node of the set and its bucket

  /// Bytes of heap memory of a text; short ones lie in the object.
  static int64_t on_heap(const std::string& value) {
    return value.capacity() <= 15 ? 0 : static_cast<int64_t>(value.capacity()) + 1;
  }

  bool refuse(std::string reason) {
    position_ = reached_ - text_.data();
    reason_ = std::move(reason);
    return false;
  }

  /// Counts memory before it is allocated; `temporary` bytes are freed at once.
  bool reserve(int64_t bytes, int64_t temporary = 0) {
    reserved_ += bytes;
    return reserved_ + temporary <= limits_.memory ||
           refuse(text("its values would take more than ", limits_.memory, " bytes of memory"));
  }

  /// Counts the memory of one more item: a full vector doubles, and keeps the old items while it copies them.
  template <class Items>
  bool reserve_item(const Items& items) {
    if (items.size() < items.capacity()) return true;
    const auto size = static_cast<int64_t>(items.capacity() * sizeof(items[0]));
    return reserve(std::max<int64_t>(size, sizeof(items[0])), size);
  }

  /// Counts a value; false, with an error, beyond the limit.
  bool count() {
    return ++values_ <= limits_.values || refuse(text("more than ", limits_.values, " values"));
  }

  /// Puts a complete value into the innermost open list or object, or makes it the root.
  bool place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return true;
    }
    auto& [parent, key, keys, keys_bytes] = open_.back();
    if (parent.is_object()) {
      if (!reserve_item(parent.members()) || !reserve(on_heap(key))) return false;
      parent.append(std::move(key), std::move(value));
    } else {
      if (!reserve_item(parent.list())) return false;
      parent.push(std::move(value));
    }
    return true;
  }

  /// Adds a value without children.
  bool add(Json value) {
    if (!count() || (value.is_text() && !reserve(on_heap(value.text())))) return false;
    return place(std::move(value));
  }

  /// Begins a list or an object, whose items follow.
  bool open(Json value) {
    if (!count()) return false;
    if (static_cast<int64_t>(open_.size()) >= limits_.depth) {
      return refuse(text("more than ", limits_.depth, " lists and objects within each other"));
    }
    open_.push_back({.value = std::move(value), .key = {}, .keys = {}});
    return true;
  }

  bool close() {
    Json value = std::move(open_.back().value);
    reserved_ -= open_.back().keys_bytes;
    open_.pop_back();
    return place(std::move(value));
  }

  std::string_view text_;
  const char* reached_;  // how far the parser has read
  JsonLimits limits_;
  int64_t values_ = 0;    // number of values so far
  int64_t reserved_ = 0;  // bytes of memory of the values so far
  std::vector<Open> open_;
  Json root_;
  int64_t position_ = 0;
  std::string reason_;
};

void dump_text(const std::string& value, std::string& out) {
  // The library escapes the text, and replaces invalid UTF-8.
  out += nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void dump_real(double value, std::string& out) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const std::string digits = exact_number(value);
  out += digits;
  // Whole numbers get ".0", so that they are read back as real numbers.
  if (digits.find_first_of(".e") == std::string::npos) out += ".0";
}

void break_line(int indent, int depth, std::string& out) {
  if (indent < 0) return;
  out += '\n';
  out.append(static_cast<size_t>(indent * depth), ' ');
}

void dump_into(const Json& value, int indent, int depth, std::string& out);

void dump_into(const JsonMember& member, int indent, int depth, std::string& out) {
  dump_text(member.key, out);
  out += ": ";
  dump_into(member.value, indent, depth, out);
}

template <class Items>
void dump_items(const Items& items, const char* brackets, int indent, int depth, std::string& out) {
  out += brackets[0];
  for (const auto& item : items) {
    if (&item != &items.front()) out += indent < 0 ? ", " : ",";
    break_line(indent, depth + 1, out);
    dump_into(item, indent, depth + 1, out);
  }
  if (!items.empty()) break_line(indent, depth, out);
  out += brackets[1];
}

void dump_into(const Json& value, int indent, int depth, std::string& out) {
  if (value.is_object()) {
    dump_items(value.members(), "{}", indent, depth, out);
  } else if (value.is_list()) {
    dump_items(value.list(), "[]", indent, depth, out);
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

template <class T>
const T& Json::held(const char* wanted) const {
  if (const T* value = std::get_if<T>(&value_)) return *value;
  fail(Fault::data, "JSON: ", kinds[value_.index()], " stands where ", wanted, " is needed");
}

bool Json::boolean() const { return held<bool>("a boolean"); }
int64_t Json::integer() const { return held<int64_t>("a whole number"); }
const std::string& Json::text() const { return held<std::string>("text"); }
const Json::List& Json::list() const { return held<List>("a list"); }
const Json::Members& Json::members() const { return held<Members>("an object"); }

double Json::real() const {
  if (is_null()) return std::numeric_limits<double>::quiet_NaN();
  return is_integer() ? static_cast<double>(integer()) : held<double>("a number");
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
  if (const Json* old = find(key)) {
    const_cast<Json&>(*old) = std::move(value);
    return *this;
  }
  return append(std::string(key), std::move(value));
}

Json& Json::append(std::string key, Json value) {
  std::get<Members>(value_).push_back({.key = std::move(key), .value = std::move(value)});
  return *this;
}

Json& Json::push(Json value) {
  if (is_null()) value_ = List();
  held<List>("a list");
  std::get<List>(value_).push_back(std::move(value));
  return *this;
}

std::string Json::dump(int indent) const {
  std::string out;
  dump_into(*this, indent, 0, out);
  return out;
}

Json parse_json(std::string_view text, std::string_view name, const JsonLimits& limits) {
  TreeBuilder builder(text, limits);
  if (!builder.parse()) fail(Fault::data, name, " is not the JSON it should be: ", builder.error(), ".");
  return builder.take();
}

}  // namespace heed
