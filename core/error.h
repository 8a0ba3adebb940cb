// One exception type, whose text names what is wrong, where, and what to do next.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace heed {

using Path = std::filesystem::path;  ///< names of files and folders throughout

/// The kind of a failure; its number is the exit code of the program.
enum class Fault {
  internal = 1,  ///< a bug of Heed
  usage = 2,     ///< a wrong argument, option or configuration
  data = 3,      ///< a file whose content is not what it should be
  numeric = 4,   ///< a value that is not finite, or training that diverges
  file = 5,      ///< a file system operation failed
  busy = 6,      ///< another process holds the run folder
  memory = 7,    ///< out of memory
  device = 8,    ///< the device is missing or failed
};

/// The exception of every failure in Heed.
class Error : public std::runtime_error {
 public:
  /// `what`: the value, the place, the legal values, what to do next.
  Error(Fault fault, const std::string& what) : std::runtime_error(what), fault_(fault) {}
  Fault fault() const { return fault_; }  ///< its number is the exit code of the program

 private:
  Fault fault_;
};

namespace detail {

std::string number(double value);  ///< shortest text that reads back as the same float or double

template <class Part>
void append(std::string& out, const Part& part) {
  using T = std::decay_t<Part>;
  if constexpr (std::is_same_v<T, bool>) {
    out += part ? "true" : "false";
  } else if constexpr (std::is_same_v<T, char>) {
    out += part;
  } else if constexpr (std::is_floating_point_v<T>) {
    out += number(static_cast<double>(part));
  } else if constexpr (std::is_integral_v<T>) {
    out += std::to_string(part);
  } else if constexpr (std::is_same_v<T, Path>) {
    out += part.string();
  } else if constexpr (std::is_convertible_v<const Part&, std::string_view>) {
    out += std::string_view(part);
  } else {
    out += to_string(part);  // found beside the type: Shape, DType, Device, ...
  }
}

}  // namespace detail

/// Text of a file as a message may show it: the first `max_bytes` bytes after terminal_word()
/// (core/io/terminal.h).
std::string shown(std::string_view text, size_t max_bytes = 60);

/// All parts in one string: `text("matmul: ", a.shape(), " times ", b.shape())`.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::string out;
  (detail::append(out, parts), ...);
  return out;
}

/// Throws an Error of the given kind, its text made of the parts.
template <class... Parts>
[[noreturn]] void fail(Fault fault, const Parts&... parts) {
  throw Error(fault, text(parts...));
}

/// Throws a usage Error: an argument of a call is wrong.
template <class First, class... Parts>
requires(!std::is_same_v<First, Fault>) [[noreturn]] void fail(const First& first, const Parts&... parts) {
  throw Error(Fault::usage, text(first, parts...));
}

}  // namespace heed
