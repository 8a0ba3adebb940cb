// Spec: name:key=value,... as people write an attention.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nn/fields.h"

namespace heed {

/// An attention by name, with options: "linear:epsilon=1e-5".
struct Spec {
  std::string name;
  std::vector<std::pair<std::string, std::string>> options;  ///< in the order written
};

/// Fails on a text that is not name:key=value,... and on a key written twice.
Spec parse_spec(std::string_view text);
std::string to_string(const Spec& spec);

/// The known word nearest to `word` within two edits; empty when none is.
std::string nearest(std::string_view word, std::span<const std::string> known);
/// " Did you mean 'x'?" or nothing, then " Known: a, b, c."
std::string suggestion(std::string_view word, std::span<const std::string> known);

/// Counts, lengths and widths beyond this are slips; products of two do not overflow. Seeds may be anything.
constexpr int64_t most_counted = 1'000'000'000;

/// One option as text: for help, docs and config.toml.
struct OptionText {
  std::string name, value, kind,
      help;                  ///< kind: "integer", "number", "true or false", "text" or the words it takes
  std::string follows = {};  ///< the option whose value this one has, as it is not set; mostly empty
};

/// Every option of `made`, a struct with fields(), with its present value. Groups give dotted names.
template <class Options>
std::vector<OptionText> options_of(Options& made);

/// Sets one option by its (dotted) name. Fails naming the value, the legal ones, and the nearest name;
/// `where` says where it was written. Whole numbers go to most_counted.
template <class Options>
void set_option(Options& made, const std::string& name, const std::string& value, const std::string& where);

namespace detail {
std::vector<OptionText> options_of(const std::function<void(Fields&)>& fields);
void set_option(const std::function<void(Fields&)>& fields, const std::string& name, const std::string& value,
                const std::string& where);
}  // namespace detail

template <class Options>
std::vector<OptionText> options_of(Options& made) {
  return detail::options_of([&](Fields& f) { made.fields(f); });
}

template <class Options>
void set_option(Options& made, const std::string& name, const std::string& value, const std::string& where) {
  detail::set_option([&](Fields& f) { made.fields(f); }, name, value, where);
}

}  // namespace heed
