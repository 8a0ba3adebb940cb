// Labelled byte strings: slicing, hashing, cache.
#include "heed/data/text/labelled_sequences.h"

#include <cstdlib>

#include "heed/core/io/files.h"
#include "heed/tests/data/scratch.h"

using namespace heed;

namespace {

Sequences sample(int64_t parts = 1) {
  Sequences out;
  out.parts = parts;
  for (int i = 0; i < 5; ++i) {
    for (int64_t part = 0; part < parts; ++part) out.add(std::string(static_cast<size_t>(i), 'a' + part));
    out.labels.push_back(static_cast<uint8_t>(i));
  }
  return out;
}

/// An environment variable for the time of the object.
struct Variable {
  Variable(const char* variable, const std::string& value) : name(variable) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name); }
  const char* name;
};

}  // namespace

TEST_CASE("sequences: cutting and picking keep every byte with its label") {
  for (const int64_t parts : {1, 2}) {
    const Sequences all = sample(parts), some = all.slice(2, 4);
    REQUIRE(some.count() == 2);
    CHECK(some.at(0, parts - 1) == all.at(2, parts - 1));
    CHECK(some.at(1) == "aaa");
    CHECK(some.labels == std::vector<uint8_t>{2, 3});
    CHECK(all.slice(0, 0).count() == 0);
    const std::vector<int64_t> numbers{4, 0, 3};
    const Sequences picked = all.pick(numbers);
    CHECK(picked.labels == std::vector<uint8_t>{4, 0, 3});
    CHECK(picked.at(0) == "aaaa");
    CHECK(picked.at(1).empty());
    CHECK(picked.parts == parts);
    CHECK(all.sha256() != some.sha256());
    CHECK(all.sha256() == sample(parts).sha256());
  }
}

TEST_CASE("sequences: encoding keeps them, and any damage is seen") {
  const Sequences all = sample(2);
  const std::string bytes = encode(all);
  const Sequences again = decode_sequences(bytes, "kept");
  CHECK(again.sha256() == all.sha256());
  CHECK(again.parts == 2);
  for (uint64_t i = 0; i < 500; ++i) {
    const std::string other = damaged(bytes, i);
    if (other != bytes) CHECK(!accepted([&] { decode_sequences(other, "kept"); }));
  }
}

TEST_CASE("sequences: what is kept is made once, and a damaged file only means making it anew") {
  const Scratch scratch;
  const Variable cache("HEED_CACHE", (scratch.path() / "cache").string());
  int made = 0;
  std::string said;
  const auto get = [&](const std::string& recipe) {
    said.clear();
    return cached(
               recipe,
               [&] {
                 ++made;
                 return sample();
               },
               [&](const std::string& line) { said += line; })
        .sha256();
  };
  CHECK(get("one") == sample().sha256());
  CHECK(get("one") == sample().sha256());
  CHECK(made == 1);
  CHECK_THAT(said, containing("kept in"));
  get("other");
  CHECK(made == 2);
  for (const Path& name : io::list(scratch.path() / "cache"))
    scratch.file("cache/" + name.string(), "heed sequences 1\nnothing");
  CHECK(get("one") == sample().sha256());
  CHECK(made == 3);
  CHECK_THAT(said, containing("made anew"));
  get("one");
  CHECK(made == 3);
  // Where nothing can be written everything works, and says so.
  const Variable blocked("HEED_CACHE", (scratch.file("plain", "x") / "below").string());
  CHECK(get("one") == sample().sha256());
  CHECK_THAT(said, containing("not kept"));
}
