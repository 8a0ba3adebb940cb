// Numbers as text, written and read alike under every locale of the host program.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heed {

/// The shortest text that reads back as the same double; nan, inf or -inf where it is not finite. Messages
/// use detail::number, which is shorter for numbers that were floats.
std::string exact_number(double value);

/// Formats as std::printf does in the C locale, with a decimal point in every locale of the program.
[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);
/// formatted() of a va_list.
[[gnu::format(printf, 1, 0)]] std::string formatted_list(const char* format, std::va_list values);

/// Parses a whole text as a number with a decimal point: "-2.5e-3". Returns nothing for other text, which
/// includes blanks, "+" and commas, and for numbers that no finite double holds.
std::optional<double> parsed_number(std::string_view text);
/// Parses a whole text as an integer of 64 bits: "-3". Returns nothing for other text.
std::optional<int64_t> parsed_integer(std::string_view text);

}  // namespace heed
