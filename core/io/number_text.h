// Numbers as text, written and read alike under every locale of the host program.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heed {

/// The shortest text that reads back as this very double; nan, inf or -inf where it is not finite. Messages
/// write numbers as they are best read, which for floats is shorter: see detail::number.
std::string exact_number(double value);

/// Formats as std::printf does in the C locale: a point stands before the decimals, whatever locale the
/// program has set.
[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);
/// formatted() of the arguments of a caller.
[[gnu::format(printf, 1, 0)]] std::string formatted_list(const char* format, std::va_list values);

/// The number that a text is as a whole, with a point before its decimals: "-2.5e-3". Nothing for other text
/// (a blank, a sign "+" or a comma included) and for what is infinite, not a number or beyond a double.
std::optional<double> parsed_number(std::string_view text);
/// Reads a text that is as a whole an integer of 64 bits: "-3". Gives nothing for other text.
std::optional<int64_t> parsed_integer(std::string_view text);

}  // namespace heed
