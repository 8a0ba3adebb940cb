// Python's pickles, read as data: nothing in them is called.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// A value of a pickle.
struct PickleValue {
  /// What it is: a constant, a container, a name of Python, or a call that Python would make.
  enum class Kind { none, boolean, integer, real, text, tuple, list, dict, global, call, persistent };

  Kind kind = Kind::none;           ///< which of the members below hold something
  int64_t integer = 0;              ///< an integer has its value here, and a boolean 0 or 1
  double real = 0;                  ///< a real number has its value here
  std::string_view text = {};       ///< a text is here, and a global's name: "torch.FloatStorage"
  std::vector<int32_t> items = {};  ///< numbers of values: elements; keys and values of a dict in turn; a
                                    ///< call's global and its tuple of arguments; a persistent's name
  size_t offset = 0;                ///< byte of the pickle at which it begins
};

/// A pickle in memory. Its values may share values, and contain themselves: walk to a known depth.
class Pickle {
 public:
  /// Reads the opcodes that Python writes for constants, containers and calls, of protocols 2 to 5. `globals`
  /// are the names that may occur ("module.name"); collections.OrderedDict() becomes a dict. Fault::data that
  /// names `name` and the byte for another name, another opcode, more than a million values, and anything
  /// else. Memory is bounded by a constant times the bytes. `bytes` and `globals` must outlive it.
  static Pickle parse(std::string_view bytes, std::string name, std::span<const std::string_view> globals);

  const std::string& name() const { return name_; }  ///< names the pickle in errors
  const PickleValue& root() const { return values_[static_cast<size_t>(root_)]; }  ///< the outermost value
  /// The value of this number.
  const PickleValue& at(int32_t number) const { return values_[static_cast<size_t>(number)]; }
  /// The value of a dict at this key; nullptr where there is none, or `dict` is no dict.
  const PickleValue* find(const PickleValue& dict, std::string_view key) const;
  /// Fails: "NAME: byte N: WHAT"
  [[noreturn]] void refuse(const PickleValue& value, const std::string& what) const;

 private:
  std::string name_;
  std::vector<PickleValue> values_;
  int32_t root_ = 0;
};

/// Writes a pickle of protocol 2, as Python would for a value that shares nothing.
class PickleWriter {
 public:
  /// An integer of 64 bits.
  PickleWriter& integer(int64_t value);
  PickleWriter& real(double value);            ///< a float
  PickleWriter& boolean(bool value);           ///< True or False
  PickleWriter& text(std::string_view value);  ///< a str, in UTF-8
  PickleWriter& global(std::string_view module,
                       std::string_view name);  ///< the name of something in a module
  PickleWriter& dict();                         ///< an empty dict; then key, value, set() for each member
  PickleWriter& set();                          ///< sets the last value under the key before it
  PickleWriter& begin_tuple();                  ///< begins a tuple of the following values
  PickleWriter& end_tuple();                    ///< ends it
  PickleWriter& call();        ///< calls the global before the last value, a tuple of arguments
  PickleWriter& persistent();  ///< an object outside of the pickle, whose name is the last value
  std::string finish() const;  ///< the bytes

 private:
  std::string bytes_ = "\x80\x02";
};

}  // namespace heed
