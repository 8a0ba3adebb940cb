// JSON values: read strictly, written with members in the order given and numbers that read back unchanged.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "heed/core/error.h"

namespace heed {

struct JsonMember;

/// One JSON value. Asking it for what it is not gives Fault::data.
class Json {
 public:
  using List = std::vector<Json>;           ///< the values of a list, in their order
  using Members = std::vector<JsonMember>;  ///< names and values of an object, in their order

  Json();                                  ///< null
  Json(const Json& other);                 ///< a deep copy
  Json(Json&& other) noexcept;             ///< takes the value of `other`
  Json& operator=(const Json& other);      ///< a deep copy
  Json& operator=(Json&& other) noexcept;  ///< takes the value of `other`
  ~Json();
  /// True or false, an integer or a real number, by the type of `value`.
  template <class T>
  requires std::is_arithmetic_v<T> Json(T value);
  Json(std::string value);       ///< a text in UTF-8
  Json(std::string_view value);  ///< a text in UTF-8
  Json(const char* value);       ///< a text in UTF-8
  Json(List items);              ///< a list
  /// An object with these members, in this order: `Json::object({{"step", 400}, {"name", "a"}})`.
  static Json object(std::initializer_list<std::pair<std::string_view, Json>> members = {});

  /// Null; numbers that are not finite are written as null too.
  bool is_null() const { return value_.index() == 0; }
  /// Written without fraction and exponent, within 64 bits.
  bool is_integer() const { return value_.index() == 2; }
  /// An integer or a real number.
  bool is_number() const { return value_.index() == 2 || value_.index() == 3; }
  bool is_text() const { return value_.index() == 4; }    ///< a string
  bool is_list() const { return value_.index() == 5; }    ///< a list
  bool is_object() const { return value_.index() == 6; }  ///< an object

  bool boolean() const;     ///< Fault::data unless it is true or false
  int64_t integer() const;  ///< Fault::data unless is_integer()
  /// Any number as a double; NaN for null, which is written for numbers that are not finite.
  double real() const;
  const std::string& text() const;  ///< Fault::data unless is_text()
  const List& list() const;         ///< Fault::data unless is_list()
  const Members& members() const;   ///< Fault::data unless is_object()

  /// The member's value, or nullptr when there is none.
  const Json* find(std::string_view key) const;
  /// The member's value; Fault::data naming the key when there is none.
  const Json& at(std::string_view key) const;
  /// Sets a member; it keeps its place when it is there already. Returns *this.
  Json& set(std::string_view key, Json value);
  /// Adds a member to an object that has none of that name yet, which is not checked. Returns *this.
  Json& append(std::string key, Json value);
  /// Appends to a list. Returns *this.
  Json& push(Json value);

  /// The value as text, on one line or, where `indent` is not negative, indented by `indent` spaces. Doubles
  /// have the shortest form that reads back to the same bits; null stands for those that are not finite.
  std::string dump(int indent = -1) const;

 private:
  /// The held T; Fault::data that names `wanted` where it holds another type.
  template <class T>
  const T& held(const char* wanted) const;

  std::variant<std::monostate, bool, int64_t, double, std::string, List, Members> value_;
};

/// A named value in an object.
struct JsonMember {
  std::string key;  ///< unique within its object
  Json value;       ///< value of any kind
};

/// What a parser accepts.
struct JsonLimits {
  int64_t values = 16'000'000;         ///< values in the whole text
  int64_t depth = 64;                  ///< lists and objects within each other
  int64_t memory = int64_t{40} << 20;  ///< bytes that the values may take, beyond those of the text
};

/// Reads one JSON text (RFC 8259, UTF-8). Fault::data that names `name` and the byte when it is not one,
/// names a member twice, or passes a limit.
Json parse_json(std::string_view text, std::string_view name, const JsonLimits& limits = {});

template <class T>
requires std::is_arithmetic_v<T> Json::Json(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    value_ = value;
  } else if constexpr (std::is_integral_v<T>) {
    value_ = static_cast<int64_t>(value);
  } else {
    value_ = static_cast<double>(value);
  }
}

}  // namespace heed
