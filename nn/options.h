// Fields: the visitor that lists the parameters, children and options of an object.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "heed/core/tensor.h"

namespace heed {

class Module;

/// An option whose value is one of a few words: `f("norm", Choice(norm, {"pre", "post"}), "...")` for an enum
/// whose values count from 0.
class Choice {
 public:
  /// `words` in the order of the enum's values; `value` must outlive it.
  template <class Enum>
  Choice(Enum& value, std::initializer_list<const char*> words)
      : words_(words),
        get_([&value] { return static_cast<int>(value); }),
        set_([&value](int i) { value = static_cast<Enum>(i); }) {}

  const std::vector<const char*>& words() const { return words_; }          ///< all legal words
  const char* word() const { return words_[static_cast<size_t>(get_())]; }  ///< that of the present value
  /// Sets the enum by word; returns false when the word is not in words().
  bool choose(const std::string& word) const;

 private:
  std::vector<const char*> words_;
  std::function<int()> get_;
  std::function<void(int)> set_;
};

/// An option that is some of a few words, each with a switch: `f("bias", WordSet({{"query", query}, {"key",
/// key}}), "...")`. As text it is true for all of them, false for none, or the words with commas between.
class WordSet {
 public:
  /// A word and the switch that it turns on, which must outlive the WordSet.
  struct Member {
    const char* word;  ///< its name in settings
    bool& is_on;       ///< true if the word is among the chosen ones
  };
  /// `members` in the order in which text() lists them.
  WordSet(std::initializer_list<Member> members) : members_(members) {}

  std::vector<std::string> words() const;  ///< all legal words
  std::string text() const;                ///< "true", "false", or the chosen words: "query,key"
  /// Chooses the words of a text as text() gives it, in any order. Returns the first unknown word, and then
  /// changes nothing; empty where there is none.
  std::optional<std::string> choose(const std::string& text) const;

 private:
  std::vector<Member> members_;
};

/// Largest absolute value of an integer option without a range; products of two do not overflow. Seeds are
/// exempt.
constexpr int64_t max_integer = 1'000'000'000;

/// The range of an integer option, both ends included.
struct IntRange {
  int64_t min;  ///< smallest legal value
  int64_t max;  ///< largest legal value
};

/// Upper ends of ranges, chosen by the cost of large values.
constexpr int64_t max_rounds = 1000;             ///< passes over the whole input
constexpr int64_t max_block = 1024;              ///< tokens; shorter inputs are padded to it
constexpr int64_t max_width = 65'536;            ///< rows or columns of a matrix
constexpr int64_t max_layers = 10'000;           ///< blocks; they are made one by one
constexpr int64_t max_positions = 1'048'576;     ///< rows of a table
constexpr int64_t max_distance = 1'000'000'000;  ///< tokens; values above the input's length cost nothing

/// The option (in the same group) whose value another option takes until it is set, and that value.
struct Followed {
  const char* name;  ///< its name within the group
  double value;      ///< its present value
};

/// Visitor of parameters, children and options. A visitor overrides on() for the kinds it needs; the others
/// do nothing. One fields() list defines names, saving, counting, moving, options, help and the docs.
class Fields {
 public:
  virtual ~Fields() = default;

  /// A parameter, buffer or cached tensor; most visitors ignore an empty one.
  void operator()(const char* name, Tensor& tensor) {
    if (tensor)
      on(name, tensor);
    else
      on_empty(name, tensor);
  }
  /// The weight of a linear map, whose last two axes are outputs and inputs: optimizers for matrices, such as
  /// Muon, update it as one. An embedding, a table of positions and the filters of single channels are none.
  void matrix(const char* name, Tensor& tensor) {
    if (tensor)
      on_matrix(name, tensor);
    else
      on_empty(name, tensor);
  }
  /// A module that makes hidden states of data, or outputs such as logits of hidden states: its matrices are
  /// no matrices between hidden states.
  void boundary(const char* name, Module& child) { on_boundary(name, child); }
  /// A boundary() that may be missing; nothing where it is null.
  template <class M>
  void boundary(const char* name, std::unique_ptr<M>& child) {
    if (child) on_boundary(name, *child);
  }
  /// A tensor computed from the options: moved with the module, but neither trained nor saved.
  void constant(const char* name, Tensor& tensor) {
    if (tensor) on_constant(name, tensor);
  }
  /// A module in it; its tensors are named name.tensor.
  void operator()(const char* name, Module& child) { on(name, child); }
  /// A module in it; nothing where it is null.
  template <class M>
  void operator()(const char* name, std::unique_ptr<M>& child) {
    if (child) on(name, *child);
  }
  /// Children are named name.0, name.1, ...; nothing where one is null.
  template <class M>
  void operator()(const char* name, std::vector<std::unique_ptr<M>>& children) {
    for (size_t i = 0; i < children.size(); ++i)
      if (children[i]) on((std::string(name) + "." + std::to_string(i)).c_str(), *children[i]);
  }
  /// An option with its one-line help: an integer, a real number, a switch or a text.
  template <class Option>
  requires(std::is_same_v<Option, int64_t> || std::is_same_v<Option, double> ||
           std::is_same_v<Option, bool> || std::is_same_v<Option, std::string>) void
  operator()(const char* name, Option& option, const char* help) {
    on(name, option, help);
  }
  /// An integer option limited to `range`: for every loop count and size that nothing else bounds.
  void operator()(const char* name, int64_t& option, IntRange range, const char* help) {
    on(name, option, range, help);
  }
  /// A number that has the value of another option while it is not set.
  void operator()(const char* name, std::optional<double>& option, const Followed& followed,
                  const char* help) {
    on(name, option, followed, help);
  }
  /// One of a few words, with its one-line help.
  void operator()(const char* name, Choice option, const char* help) { on(name, option, help); }
  /// Some of a few words, with its one-line help.
  void operator()(const char* name, WordSet option, const char* help) { on(name, option, help); }
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
  virtual void on(const char*, Tensor&) {}  ///< a tensor that is not empty
  virtual void on_matrix(const char* name, Tensor& tensor) { on(name, tensor); }  ///< see matrix()
  virtual void on_boundary(const char* name, Module& child) { on(name, child); }  ///< see boundary()
  /// An empty tensor: random numbers that are drawn at each call unless a user fixes them here.
  virtual void on_empty(const char*, Tensor&) {}
  virtual void on_constant(const char*, Tensor&) {}  ///< a tensor computed from the options
  virtual void on(const char*, Module&) {}           ///< a child; visitors that go deeper call its fields()
  virtual void on(const char*, int64_t&, const char*) {}  ///< an integer option
  /// An integer option with its range; without an override as one without a range.
  virtual void on(const char* name, int64_t& option, IntRange, const char* help) { on(name, option, help); }
  virtual void on(const char*, double&, const char*) {}  ///< a real option
  /// A real option that follows another one while it is unset.
  virtual void on(const char*, std::optional<double>&, const Followed&, const char*) {}
  virtual void on(const char*, bool&, const char*) {}         ///< a switch
  virtual void on(const char*, std::string&, const char*) {}  ///< a text
  virtual void on(const char*, Choice&, const char*) {}       ///< one of a few words
  virtual void on(const char*, WordSet&, const char*) {}      ///< some of a few words
  virtual void enter(const char*) {}                          ///< a group of options begins; they come next
  virtual void leave() {}                                     ///< that group ends
};

namespace detail {
void check_ranges(const std::function<void(Fields&)>& fields, const std::string& prefix);
}  // namespace detail

/// Fails at the first integer option outside its range: "model.layers = 0. It must be 1 to 10000." `options`
/// is a struct with fields(); `prefix`, such as "model.", goes before each name. set_option() checks the same
/// for values that users type; this is for those that a program sets.
template <class Options>
void check_ranges(Options& options, const std::string& prefix) {
  detail::check_ranges([&](Fields& f) { options.fields(f); }, prefix);
}

}  // namespace heed
