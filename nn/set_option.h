// Options by name: lists those of a struct with fields(), sets one from text, and suggests the nearest name.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/nn/options.h"

namespace heed {

/// The known word nearest to `word`: at most two edits away, one if it is short; empty if there is none.
std::string nearest(std::string_view word, std::span<const std::string> known);
/// The end of an error message about an unknown word: " Did you mean 'x'?" if one is near, " Known: a, b, c."
std::string suggestion(std::string_view word, std::span<const std::string> known);

/// One option as text, for help, docs and config.toml.
struct OptionText {
  std::string name;                    ///< dotted name, as in a spec or config.toml
  std::string value;                   ///< current value; of an unset option, the value that it follows
  std::string kind;                    ///< "integer", "number", "true or false", "text" or the legal words
  std::string help;                    ///< one line
  std::string follows = {};            ///< name of the option that an unset one follows; otherwise empty
  std::optional<IntRange> range = {};  ///< legal range of an integer option that declares one
};

/// True where TOML has the value without quotes: of numbers, true and false.
bool is_bare_in_toml(const OptionText& option);
/// The legal values of an option, for help: its kind, with the range of an integer.
std::string takes(const OptionText& option);

namespace detail {
std::vector<OptionText> options_of(const std::function<void(Fields&)>& fields);
void set_option(const std::function<void(Fields&)>& fields, const std::string& name, const std::string& value,
                const std::string& where);
}  // namespace detail

/// Every option of `options`, a struct with fields(), with its current value. Options of groups have dotted
/// names.
template <class Options>
std::vector<OptionText> options_of(Options& options) {
  return detail::options_of([&](Fields& f) { options.fields(f); });
}

/// Sets one option by its dotted name. Fails on an unknown name (naming the nearest) and on an illegal value
/// (naming the legal ones); `where` is the start of the message. Integers without a range are limited to
/// +-max_integer.
template <class Options>
void set_option(Options& options, const std::string& name, const std::string& value,
                const std::string& where) {
  detail::set_option([&](Fields& f) { options.fields(f); }, name, value, where);
}

}  // namespace heed
