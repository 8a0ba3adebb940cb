// A machine for the opcodes of pickles (Python's pickletools describes them) that builds values and calls
// none.
#include "heed/core/io/pickle.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "heed/core/error.h"

namespace heed {
namespace {

using Kind = PickleValue::Kind;

constexpr size_t max_pickle_values = 1'000'000;
constexpr std::string_view ordered_dict = "collections.OrderedDict";

/// The opcodes that are read.
enum class Opcode : unsigned char {
  mark = '(',
  stop = '.',
  binfloat = 'G',
  binint = 'J',
  binint1 = 'K',
  binint2 = 'M',
  none = 'N',
  binpersid = 'Q',
  reduce = 'R',
  binunicode = 'X',
  append = 'a',
  build = 'b',
  global = 'c',
  appends = 'e',
  binget = 'h',
  long_binget = 'j',
  binput = 'q',
  long_binput = 'r',
  setitem = 's',
  tuple = 't',
  setitems = 'u',
  empty_list = ']',
  empty_tuple = ')',
  empty_dict = '}',
  proto = 0x80,
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  newtrue = 0x88,
  newfalse = 0x89,
  long1 = 0x8a,
  short_binunicode = 0x8c,
  stack_global = 0x93,
  memoize = 0x94,
  frame = 0x95,
};

/// Reads one pickle. Every error names the file and the byte.
class PickleReader {
 public:
  PickleReader(std::string_view bytes, std::string_view name, std::span<const std::string_view> globals,
               std::vector<PickleValue>& values)
      : bytes_(bytes), name_(name), globals_(globals), values_(values) {}

  /// The number of the outermost value.
  int32_t read() {
    while (true) {
      begin_ = at_;
      const auto opcode = static_cast<Opcode>(number(1));
      if (opcode == Opcode::stop) break;
      run(opcode);
    }
    if (at_ != bytes_.size()) refuse(text(bytes_.size() - at_, " bytes follow its end"));
    if (!marks_.empty() || stack_.size() != 1) refuse("it ends with more or less than one value");
    return stack_[0];
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    fail(Fault::data, name_, ": byte ", begin_, ": ", what, ". Nothing of it was run. Save the file again.");
  }

  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_)
      refuse(text("it is cut short: ", count, " bytes are needed, and ", bytes_.size() - at_, " follow"));
    const std::string_view out = bytes_.substr(at_, count);
    at_ += count;
    return out;
  }
  /// An unsigned number of `size` bytes, little-endian.
  uint64_t number(size_t size) {
    const std::string_view raw = take(size);
    uint64_t out = 0;
    for (size_t i = size; i-- > 0;) out = out << 8 | static_cast<unsigned char>(raw[i]);
    return out;
  }
  std::string_view line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) refuse("a name has no end");
    const std::string_view out = take(end - at_);
    ++at_;
    return out;
  }

  void push(PickleValue value) {
    if (values_.size() >= max_pickle_values) refuse(text("it has more than ", max_pickle_values, " values"));
    value.offset = begin_;
    stack_.push_back(static_cast<int32_t>(values_.size()));
    values_.push_back(std::move(value));
  }
  void push_integer(int64_t value) { push({.kind = Kind::integer, .integer = value}); }
  /// The first place of the stack that belongs to the innermost open container.
  size_t bottom() const { return marks_.empty() ? 0 : marks_.back(); }
  int32_t pop() {
    if (stack_.size() <= bottom()) refuse("a value is missing");
    const int32_t out = stack_.back();
    stack_.pop_back();
    return out;
  }
  PickleValue& top(Kind kind, const char* what) {
    if (stack_.size() <= bottom() || values_[static_cast<size_t>(stack_.back())].kind != kind)
      refuse(text("there is no ", what, " here"));
    return values_[static_cast<size_t>(stack_.back())];
  }
  const PickleValue& value_of(int32_t number) const { return values_[static_cast<size_t>(number)]; }
  /// The last `count` values.
  std::vector<int32_t> pop_all(size_t count) {
    if (stack_.size() - bottom() < count) refuse("a value is missing");
    const auto begin = stack_.end() - static_cast<std::ptrdiff_t>(count);
    std::vector<int32_t> out(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    return out;
  }
  /// The values behind the last mark, which ends.
  std::vector<int32_t> pop_to_mark() {
    if (marks_.empty()) refuse("a mark is missing");
    std::vector<int32_t> out = pop_all(stack_.size() - marks_.back());
    marks_.pop_back();
    return out;
  }
  void push_tuple(std::vector<int32_t> items) { push({.kind = Kind::tuple, .items = std::move(items)}); }
  void add_to(Kind kind, const char* what, const std::vector<int32_t>& items) {
    if (kind == Kind::dict && items.size() % 2 != 0) refuse("a key has no value");
    std::vector<int32_t>& all = top(kind, what).items;
    all.insert(all.end(), items.begin(), items.end());
  }

  void push_global(std::string_view module, std::string_view word) {
    const std::string full = text(module, ".", word);
    const auto found = std::ranges::find(globals_, full);
    if (found == globals_.end()) {
      std::string known;
      for (const std::string_view one : globals_) known += text(known.empty() ? "" : ", ", one);
      refuse(text("it names ", shown(full), ", and only these names are read: ", known));
    }
    push({.kind = Kind::global, .text = *found});
  }
  /// A call of the global below the tuple on top.
  void push_call() {
    const int32_t arguments = pop(), callee = pop();
    if (value_of(callee).kind != Kind::global || value_of(arguments).kind != Kind::tuple)
      refuse("a call is not of a name with a tuple of arguments");
    if (value_of(callee).text != ordered_dict)
      return push({.kind = Kind::call, .items = {callee, arguments}});
    if (!value_of(arguments).items.empty()) refuse("an OrderedDict has arguments");
    push({.kind = Kind::dict});
  }
  void memoize(uint64_t place) {
    if (stack_.size() <= bottom()) refuse("a value is missing");
    memo_[place] = stack_.back();
  }
  void look_up(uint64_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) refuse(text("nothing was kept as number ", place));
    stack_.push_back(found->second);
    if (stack_.size() > max_pickle_values) refuse(text("it has more than ", max_pickle_values, " values"));
  }
  void push_long(uint64_t size) {
    if (size > sizeof(int64_t)) refuse(text("an integer has ", size, " bytes; it must have at most 8"));
    uint64_t value = number(size);
    const auto shift = static_cast<unsigned>(64 - 8 * size);
    if (size > 0 && size < 8) value = static_cast<uint64_t>(static_cast<int64_t>(value << shift) >> shift);
    push_integer(static_cast<int64_t>(value));
  }

  void run(Opcode opcode) {
    switch (opcode) {
      case Opcode::proto:
        if (const uint64_t protocol = number(1); protocol > 5) refuse(text("its protocol is ", protocol));
        return;
      case Opcode::frame:
        number(8);
        return;
      case Opcode::mark:
        marks_.push_back(stack_.size());
        return;
      case Opcode::none:
        return push({});
      case Opcode::newtrue:
      case Opcode::newfalse:
        return push({.kind = Kind::boolean, .integer = opcode == Opcode::newtrue});
      case Opcode::binint:
        return push_integer(static_cast<int32_t>(number(4)));
      case Opcode::binint1:
        return push_integer(static_cast<int64_t>(number(1)));
      case Opcode::binint2:
        return push_integer(static_cast<int64_t>(number(2)));
      case Opcode::long1:
        return push_long(number(1));
      case Opcode::binfloat: {
        uint64_t bits = 0;
        for (const char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);
        return push({.kind = Kind::real, .real = std::bit_cast<double>(bits)});
      }
      case Opcode::binunicode:
        return push({.kind = Kind::text, .text = take(number(4))});
      case Opcode::short_binunicode:
        return push({.kind = Kind::text, .text = take(number(1))});
      default:
        return build(opcode);
    }
  }
  /// The opcodes that take values from the stack, and those of the memo.
  void build(Opcode opcode) {
    switch (opcode) {
      case Opcode::empty_list:
        return push({.kind = Kind::list});
      case Opcode::empty_tuple:
        return push_tuple({});
      case Opcode::empty_dict:
        return push({.kind = Kind::dict});
      case Opcode::tuple:
        return push_tuple(pop_to_mark());
      case Opcode::tuple1:
      case Opcode::tuple2:
      case Opcode::tuple3:
        return push_tuple(pop_all(static_cast<size_t>(opcode) - static_cast<size_t>(Opcode::tuple1) + 1));
      case Opcode::append:
        return add_to(Kind::list, "list", pop_all(1));
      case Opcode::appends:
        return add_to(Kind::list, "list", pop_to_mark());
      case Opcode::setitem:
        return add_to(Kind::dict, "dict", pop_all(2));
      case Opcode::setitems:
        return add_to(Kind::dict, "dict", pop_to_mark());
      case Opcode::global: {
        const std::string_view module = line();
        return push_global(module, line());
      }
      case Opcode::stack_global: {
        const std::vector<int32_t> names = pop_all(2);
        for (const int32_t one : names) {
          if (value_of(one).kind != Kind::text) refuse("a name is no text");
        }
        return push_global(value_of(names[0]).text, value_of(names[1]).text);
      }
      case Opcode::reduce:
        return push_call();
      case Opcode::build:  // attributes of an OrderedDict, such as _metadata of a state_dict
        pop();
        top(Kind::dict, "dict");
        return;
      case Opcode::binpersid: {
        const int32_t id = pop();
        return push({.kind = Kind::persistent, .items = {id}});
      }
      case Opcode::binput:
        return memoize(number(1));
      case Opcode::long_binput:
        return memoize(number(4));
      case Opcode::memoize:
        return memoize(memo_.size());
      case Opcode::binget:
        return look_up(number(1));
      case Opcode::long_binget:
        return look_up(number(4));
      default:
        refuse(text("the opcode ", static_cast<int>(opcode), " is none of those that a model needs"));
    }
  }

  std::string_view bytes_, name_;
  std::span<const std::string_view> globals_;
  std::vector<PickleValue>& values_;
  std::vector<int32_t> stack_;
  std::vector<size_t> marks_;  // sizes of the stack at which open containers begin
  std::unordered_map<uint64_t, int32_t> memo_;
  size_t at_ = 0, begin_ = 0;
};

}  // namespace

Pickle Pickle::parse(std::string_view bytes, std::string name, std::span<const std::string_view> globals) {
  Pickle out;
  out.name_ = std::move(name);
  out.root_ = PickleReader(bytes, out.name_, globals, out.values_).read();
  return out;
}

const PickleValue* Pickle::find(const PickleValue& dict, std::string_view key) const {
  if (dict.kind != Kind::dict) return nullptr;
  for (size_t i = dict.items.size(); i >= 2; i -= 2) {  // the last one that was set holds
    const PickleValue& one = at(dict.items[i - 2]);
    if (one.kind == Kind::text && one.text == key) return &at(dict.items[i - 1]);
  }
  return nullptr;
}

void Pickle::refuse(const PickleValue& value, const std::string& what) const {
  fail(Fault::data, name_, ": byte ", value.offset, ": ", what);
}

}  // namespace heed
