// Fields: the visitor that lists what something is made of.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/tensor.h"

namespace heed {

class Module;

/// An option that takes one of a few words: `f("norm", Choice(norm, {"pre", "post"}), "...")` for an enum
/// counted from 0.
class Choice {
 public:
  template <class Enum>
  Choice(Enum& value, std::initializer_list<const char*> words)
      : words_(words),
        get_([&value] { return static_cast<int>(value); }),
        set_([&value](int i) { value = static_cast<Enum>(i); }) {}

  const std::vector<const char*>& words() const { return words_; }
  const char* word() const { return words_[static_cast<size_t>(get_())]; }
  /// False when the word is none of words().
  bool choose(const std::string& word) const;

 private:
  std::vector<const char*> words_;
  std::function<int()> get_;
  std::function<void(int)> set_;
};

/// Counts, lengths and widths beyond this are slips; products of two do not overflow. Seeds may be anything.
constexpr int64_t most_counted = 1'000'000'000;

/// The whole numbers that an option takes.
struct IntRange {
  int64_t min, max;
};

/// Upper ends of ranges, by what a number costs.
constexpr int64_t max_rounds = 1000;             ///< a loop that works on the whole input each time
constexpr int64_t max_block = 1024;              ///< tokens that shorter inputs are padded to
constexpr int64_t max_width = 65'536;            ///< rows or columns of a matrix
constexpr int64_t max_positions = 1'048'576;     ///< rows of a table
constexpr int64_t max_distance = 1'000'000'000;  ///< tokens, of which an input's length alone costs anything

/// The number whose value another one has until it is set: its name in the same group, and what it is.
struct Followed {
  const char* name;
  double value;
};

/// Visits what something is made of: parameters, children, options. A visitor overrides the kinds it cares
/// for; the rest do nothing. One list serves names, saving, counting, moving, options, help and the docs.
class Fields {
 public:
  virtual ~Fields() = default;

  /// A parameter, buffer or remembered tensor; most visitors pass over an empty one.
  void operator()(const char* name, Tensor& tensor) {
    if (tensor)
      on(name, tensor);
    else
      on_empty(name, tensor);
  }
  /// A tensor that follows from the options: it moves with the rest but is neither trained nor saved.
  void constant(const char* name, Tensor& tensor) {
    if (tensor) on_constant(name, tensor);
  }
  void operator()(const char* name, Module& child) { on(name, child); }
  template <class M>
  void operator()(const char* name, std::unique_ptr<M>& child) {
    if (child) on(name, *child);
  }
  /// Children are named name.0, name.1, ...
  template <class M>
  void operator()(const char* name, std::vector<std::unique_ptr<M>>& children) {
    for (size_t i = 0; i < children.size(); ++i)
      on((std::string(name) + "." + std::to_string(i)).c_str(), *children[i]);
  }
  /// An option with its one-line help.
  void operator()(const char* name, int64_t& option, const char* help) { on(name, option, help); }
  /// A whole number that takes those of `range` alone: every loop count and size that is not bounded
  /// otherwise.
  void operator()(const char* name, int64_t& option, IntRange range, const char* help) {
    on(name, option, range, help);
  }
  void operator()(const char* name, double& option, const char* help) { on(name, option, help); }
  /// A number that follows another one while it is empty.
  void operator()(const char* name, std::optional<double>& option, const Followed& followed,
                  const char* help) {
    on(name, option, followed, help);
  }
  void operator()(const char* name, bool& option, const char* help) { on(name, option, help); }
  void operator()(const char* name, std::string& option, const char* help) { on(name, option, help); }
  void operator()(const char* name, Choice option, const char* help) { on(name, option, help); }
  /// A group of options with its own fields(), named group.option.
  template <class Group>
  requires requires(Group& group, Fields& f) {
    group.fields(f);
  } &&(!std::is_base_of_v<Module, Group>)void operator()(const char* name, Group& group) {
    enter(name);
    group.fields(*this);
    leave();
  }

 protected:
  virtual void on(const char*, Tensor&) {}
  /// A tensor that is not there: random numbers drawn anew at each call, unless somebody puts theirs here.
  virtual void on_empty(const char*, Tensor&) {}
  virtual void on_constant(const char*, Tensor&) {}
  virtual void on(const char*, Module&) {}
  virtual void on(const char*, int64_t&, const char*) {}
  virtual void on(const char* name, int64_t& option, IntRange, const char* help) { on(name, option, help); }
  virtual void on(const char*, double&, const char*) {}
  virtual void on(const char*, std::optional<double>&, const Followed&, const char*) {}
  virtual void on(const char*, bool&, const char*) {}
  virtual void on(const char*, std::string&, const char*) {}
  virtual void on(const char*, Choice&, const char*) {}
  virtual void enter(const char*) {}
  virtual void leave() {}
};

}  // namespace heed
