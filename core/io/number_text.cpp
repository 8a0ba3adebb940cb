// Digits by std::to_chars and std::from_chars, columns by vsnprintf in the C locale.
#include "heed/core/io/number_text.h"

#include <locale.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "heed/core/scope.h"

namespace heed {
namespace {

template <class T>
std::optional<T> parsed(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

locale_t c_locale() {
  static const locale_t one = ::newlocale(LC_ALL_MASK, "C", nullptr);
  return one;
}

}  // namespace

std::string exact_number(double value) {
  if (std::isnan(value)) return "nan";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, end.ptr);
}

std::string formatted_list(const char* format, std::va_list values) {
  const locale_t previous = ::uselocale(c_locale());
  const AtScopeEnd restore([previous] { ::uselocale(previous); });
  std::va_list again;
  va_copy(again, values);
  const int size = std::vsnprintf(nullptr, 0, format, values);
  std::string out(static_cast<size_t>(std::max(size, 0)) + 1, '\0');
  std::vsnprintf(out.data(), out.size(), format, again);
  va_end(again);
  out.pop_back();
  return out;
}

std::string formatted(const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  std::string out = formatted_list(format, values);
  va_end(values);
  return out;
}

std::optional<double> parsed_number(std::string_view text) {
  const std::optional<double> value = parsed<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<int64_t> parsed_integer(std::string_view text) { return parsed<int64_t>(text); }

}  // namespace heed
