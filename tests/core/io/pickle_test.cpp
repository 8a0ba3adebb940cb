// tests core/io/pickle.h
#include "heed/core/io/pickle.h"

#include "heed/core/random.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

using namespace heed;

namespace {

using Kind = PickleValue::Kind;
constexpr std::string_view pickle_names[] = {"collections.OrderedDict", "torch.FloatStorage"};

Pickle unpickled(std::string_view bytes) { return Pickle::parse(bytes, "m.pkl", pickle_names); }

void check_unpickling_refused(const std::string& bytes, const std::string& reason) {
  INFO(reason);
  CHECK(fault_of([&] { unpickled(bytes); }) == Fault::data);
  CHECK_THROWS_WITH(unpickled(bytes), containing("m.pkl: byte ") && containing(reason));
}

/// A dict with each kind of value.
std::string every_kind() {
  PickleWriter out;
  out.dict().text("small").integer(-7).set().text("large").integer(int64_t{-1} << 40).set();
  out.text("real").real(0.1).set().text("yes").boolean(true).set().text("no").boolean(false).set();
  out.text("tuple").begin_tuple().integer(1).text("\u00e8").end_tuple().set();
  out.text("dict").global("collections", "OrderedDict").begin_tuple().end_tuple().call();
  out.text("key").integer(3).set().set();
  out.text("far")
      .begin_tuple()
      .text("storage")
      .global("torch", "FloatStorage")
      .end_tuple()
      .persistent()
      .set();
  out.text("called").global("torch", "FloatStorage").begin_tuple().integer(4).end_tuple().call().set();
  return out.finish();
}

}  // namespace

TEST_CASE("pickle: what is written is read, and calls are kept as data") {
  const std::string bytes = every_kind();
  const Pickle pickle = unpickled(bytes);
  const auto member = [&](const char* key) { return pickle.find(pickle.root(), key); };
  CHECK(member("small")->integer == -7);
  CHECK(member("large")->integer == int64_t{-1} << 40);
  CHECK(member("real")->real == 0.1);
  CHECK(member("yes")->integer == 1);
  CHECK(member("no")->kind == Kind::boolean);
  CHECK(member("no")->integer == 0);
  CHECK(pickle.at(member("tuple")->items[1]).text == "\u00e8");
  CHECK(pickle.find(*member("dict"), "key")->integer == 3);
  CHECK(pickle.at(pickle.at(member("far")->items[0]).items[1]).text == "torch.FloatStorage");
  CHECK(member("called")->kind == Kind::call);
  CHECK(pickle.at(pickle.at(member("called")->items[1]).items[0]).integer == 4);
  CHECK(member("other") == nullptr);
  CHECK(pickle.find(*member("small"), "key") == nullptr);
}

TEST_CASE("pickle: opcodes of Python's protocols 2 and 4") {
  // pickle.dumps({'itos': {0: 'a', 300: 'b'}, 'list': [1.5, None, -2], 'same': s, 'again': s}, 4) with s =
  // (-1, 70000)
  const std::string four = std::string("\x80\x04\x95", 3) + std::string("\x40\0\0\0\0\0\0\0", 8) +
                           std::string(
                               "}\x94(\x8c\x04itos\x94}\x94(K\0\x8c\x01"
                               "a\x94M,\x01\x8c\x01"
                               "b\x94u\x8c\x04list\x94]\x94(G?\xf8\0\0\0\0\0\0NJ\xfe\xff\xff\xff"
                               "e\x8c\x04same\x94\x8a\x01\xffJ\x70\x11\x01\0\x86\x94\x8c\x05"
                               "again\x94h\x08u.",
                               82);
  const Pickle pickle = unpickled(four);
  const PickleValue& itos = *pickle.find(pickle.root(), "itos");
  CHECK(pickle.at(itos.items[2]).integer == 300);
  CHECK(pickle.at(itos.items[3]).text == "b");
  const PickleValue& list = *pickle.find(pickle.root(), "list");
  REQUIRE(list.items.size() == 3);
  CHECK(pickle.at(list.items[0]).real == 1.5);
  CHECK(pickle.at(list.items[1]).kind == Kind::none);
  CHECK(pickle.at(list.items[2]).integer == -2);
  const PickleValue& same = *pickle.find(pickle.root(), "same");
  CHECK(pickle.at(same.items[0]).integer == -1);
  CHECK(pickle.at(same.items[1]).integer == 70000);
  CHECK(pickle.find(pickle.root(), "again") == &same);
}

TEST_CASE("pickle: a name that is not allowed is refused with its place, and no code of a pickle is run") {
  for (const char* code :
       {"cposix\nsystem\n", "cos\nsystem\n", "c__builtin__\neval\n", "ctorch\nFloatStorag\n", "c\n\n"}) {
    const std::string bytes = std::string("\x80\x02", 2) + code;
    check_unpickling_refused(bytes, "byte 2: it names ");
    check_unpickling_refused(bytes, "only these names are read: collections.OrderedDict, torch.FloatStorage");
  }
  check_unpickling_refused("\x80\x04\x8c\x05posix\x8c\x06system\x93.", "it names posix.system");
  check_unpickling_refused(std::string("(i__main__\nX\n."), "the opcode 105 is none of those");
  check_unpickling_refused("ctorch\nFloatStorage\n)\x81.", "the opcode 129 is none of those");
}

TEST_CASE("pickle: what is cut short or does not fit is refused") {
  const std::string good = every_kind();
  for (size_t size = 0; size < good.size(); ++size) {
    if (fault_of([&] { unpickled(good.substr(0, size)); }) != Fault::data) FAIL_CHECK(size);
  }
  check_unpickling_refused(good + "N", "1 bytes follow its end");
  check_unpickling_refused("\x80\x06N.", "its protocol is 6");
  check_unpickling_refused("X\xff\xff\xff\xff.", "it is cut short: 4294967295 bytes are needed");
  check_unpickling_refused("ctorch", "a name has no end");
  check_unpickling_refused("NN.", "more or less than one value");
  check_unpickling_refused(".", "more or less than one value");
  check_unpickling_refused("(N.", "more or less than one value");
  check_unpickling_refused("h\x05.", "nothing was kept as number 5");
  check_unpickling_refused("q\x05.", "a value is missing");
  check_unpickling_refused("N(a", "a value is missing");
  check_unpickling_refused("Nt.", "a mark is missing");
  check_unpickling_refused("NNs", "there is no dict here");
  check_unpickling_refused("}(Nu", "a key has no value");
  check_unpickling_refused(")Na.", "there is no list here");
  check_unpickling_refused("N)R.", "a call is not of a name");
  check_unpickling_refused("ctorch\nFloatStorage\n)RNb.", "there is no dict here");
  check_unpickling_refused("ccollections\nOrderedDict\nN\x85R.", "an OrderedDict has arguments");
  check_unpickling_refused("\x8a\x09" + std::string(9, '\1') + ".", "an integer has 9 bytes");
  check_unpickling_refused("KK\x93.", "a value is missing");
  check_unpickling_refused("NN\x93.", "a name is no text");
}

TEST_CASE("pickle: deep nesting, shared and endless values, and many of them take little") {
  std::string deep(300'000, ']');
  for (int i = 1; i < 300'000; ++i) deep += 'a';
  CHECK(unpickled(deep + ".").root().items.size() == 1);
  std::string doubled = ")";  // a pair of the pair before, forty times: 2^40 values for who walks all
  for (int i = 0; i < 40; ++i) doubled += std::string("q\0h\0\x86", 5);
  CHECK(unpickled(doubled + ".").root().items.size() == 2);
  const Pickle endless = unpickled(std::string("]q\0h\0a.", 7));
  CHECK(&endless.at(endless.root().items[0]) == &endless.root());
  check_unpickling_refused(std::string(1'000'001, 'N'), "it has more than 1000000 values");
  std::string recalled = std::string("Nq\0", 3);
  for (int i = 0; i < 1'000'001; ++i) recalled += std::string("h\0", 2);
  check_unpickling_refused(recalled, "it has more than 1000000 values");
}

TEST_CASE("pickle: twenty thousand damaged pickles are read or refused, nothing else") {
  const std::string good = every_kind();
  Rng rng(1);
  int64_t refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = good;
    for (int64_t changes = 1 + rng.below(3); changes > 0; --changes)
      bytes[static_cast<size_t>(rng.below(static_cast<int64_t>(bytes.size())))] =
          static_cast<char>(rng.below(256));
    try {
      unpickled(bytes);
    } catch (const Error& error) {
      ++refused;
      if (error.fault() != Fault::data) FAIL_CHECK(error.what());
    }
  }
  CHECK(refused > 5000);
  CHECK(refused < 20'000);
}
