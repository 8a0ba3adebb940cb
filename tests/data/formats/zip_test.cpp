// The zip reader, on good archives and on hostile ones.
#include "heed/data/formats/zip.h"

#include "heed/tests/data/scratch.h"
#include "heed/tests/data/zip_writer.h"

using namespace heed;

namespace {

std::string refused(const std::string& archive, const ZipLimits& limits = {}) {
  return refusal(Fault::data, [&] { unzip(archive, "a.zip", limits); });
}

}  // namespace

TEST_CASE("zip: stored and deflated entries, folders and a comment") {
  const std::string archive =
      make_zip({{.name = "Books.en", .bytes = "The cat.\n"},
                {.name = "folder/", .bytes = "", .deflated = false, .unix_mode = 040755},
                {.name = "folder/LICENSE", .bytes = "free", .deflated = false},
                {.name = "empty", .bytes = ""}},
               "made for a test");
  const auto entries = unzip(archive, "a.zip");
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].name == "Books.en");
  CHECK(entries[0].bytes == "The cat.\n");
  CHECK(entries[1].name == "folder/LICENSE");
  CHECK(entries[1].bytes == "free");
  CHECK(entries[2].bytes.empty());
  CHECK(unzip(make_zip({}), "a.zip").empty());
}

TEST_CASE("zip: names that leave the folder are refused") {
  for (const char* name : {"../x", "a/../../x", "/etc/x", "a//x", "./x", "a/./x", "..", "a\\..\\x", "C:x",
                           "a\nb", "\xFF", "../", "a/../"}) {
    INFO(name);
    refused(make_zip({{.name = "good", .bytes = "1"}, {.name = name, .bytes = "2"}}));
  }
  refused(make_zip({{.name = "", .bytes = "2"}}));
  refused(make_zip({{.name = std::string("a\0b", 3), .bytes = "2"}}));
  refused(make_zip({{.name = std::string(300, 'a'), .bytes = "2"}}));
}

TEST_CASE("zip: links, encryption, repeats and lies are refused by name") {
  CHECK_THAT(refused(make_zip({{.name = "l", .bytes = "/etc/passwd", .unix_mode = 0120777}})),
             containing("'l' is a symbolic link"));
  CHECK_THAT(refused(make_zip({{.name = "d", .bytes = "x", .unix_mode = 0020644}})), containing("neither"));
  CHECK_THAT(refused(make_zip({{.name = "e", .bytes = "x", .flags = 1}})), containing("encrypted"));
  CHECK_THAT(refused(make_zip({{.name = "a", .bytes = "x"}, {.name = "a", .bytes = "y"}})),
             containing("twice"));
  CHECK_THAT(refused(make_zip({{.name = "a", .bytes = "x", .claimed_crc = 1}})), containing("CRC-32"));
  CHECK_THAT(refused(make_zip({{.name = "a", .bytes = "hello", .claimed_size = 4}})),
             containing("does not inflate"));
  CHECK_THAT(refused(make_zip({{.name = "a", .bytes = "hello", .claimed_size = 6}})),
             containing("does not inflate"));
  CHECK_THAT(refused(make_zip({{.name = "a", .bytes = "x", .deflated = false, .claimed_size = 9}})),
             containing("two sizes"));
  CHECK_THAT(refused(make_zip({{.name = "a", .bytes = "x", .local_name = "b"}})), containing("otherwise"));
  CHECK_THAT(refused(make_zip({{.name = "a", .bytes = "x", .claimed_size = 900000000}})),
             containing("announces"));
}

TEST_CASE("zip: the limits hold") {
  const std::string zeros = make_zip({{.name = "zeros", .bytes = std::string(1 << 20, '\0')}});
  CHECK(zeros.size() < 3000);
  CHECK_THAT(refused(zeros, {.bytes = 1 << 19}), containing("524288 bytes that are accepted"));
  CHECK(unzip(zeros, "a.zip", {.bytes = 1 << 20})[0].bytes.size() == 1 << 20);
  CHECK_THAT(refused(make_zip({{.name = "a"}, {.name = "b"}}), {.entries = 1}), containing("2 entries"));
}

TEST_CASE("zip: cut short, extended and mutated archives are refused, never crash") {
  const std::string archive = make_zip({{.name = "Books.en", .bytes = "The cat. The cat. The cat.\n"},
                                        {.name = "LICENSE", .bytes = "free", .deflated = false}});
  for (size_t cut = 0; cut < archive.size(); ++cut) refused(archive.substr(0, cut));
  refused(archive + "x");
  refused("x" + archive);
  refused("this is no archive at all, only a line of text");
  const auto good = unzip(archive, "a.zip");
  for (uint64_t i = 0; i < 5000; ++i) {
    const std::string bytes = damaged(archive, i);
    accepted([&] {
      // What is accepted holds the same bytes: only a time or a version was changed.
      for (const ZipEntry& entry : unzip(bytes, "a.zip")) {
        const bool same =
            std::any_of(good.begin(), good.end(), [&](const ZipEntry& e) { return e.bytes == entry.bytes; });
        CHECK(same);
      }
    });
  }
}

namespace {

/// An archive with the two records of zip64 before its last record, as PyTorch writes them.
std::string with_zip64(const std::string& archive) {
  const size_t end = archive.size() - 22;
  const std::string last = archive.substr(end);
  std::string record("PK\x06\x06\x2c\0\0\0\0\0\0\0\x1e\x03\x2d\0\0\0\0\0\0\0\0\0", 24);
  for (const auto& [offset, width] : {std::pair{8, 2}, {10, 2}, {12, 4}, {16, 4}}) {
    std::string number = last.substr(static_cast<size_t>(offset), static_cast<size_t>(width));
    number.resize(8);
    record += number;
  }
  std::string locator("PK\x06\x07\0\0\0\0", 8);
  for (int i = 0; i < 8; ++i) locator += static_cast<char>(end >> (8 * i) & 0xFF);
  locator += std::string("\1\0\0\0", 4);
  return archive.substr(0, end) + record + locator + last;
}

}  // namespace

TEST_CASE("zip: stored entries are read in place, also behind the records of zip64") {
  const std::string plain =
      stored_zip({{"a/data.pkl", "one"}, {"a/data/0", std::string_view("\0two", 4)}, {"e", ""}});
  for (const std::string& archive : {plain, with_zip64(plain)}) {
    const auto entries = stored_entries(archive, "a.zip");
    REQUIRE(entries.size() == 3);
    CHECK(entries[0].name == "a/data.pkl");
    CHECK(entries[0].bytes == "one");
    CHECK(entries[1].bytes == std::string_view("\0two", 4));
    CHECK(entries[1].bytes.data() >= archive.data());
    CHECK(entries[1].bytes.data() < archive.data() + archive.size());
    CHECK(entries[2].bytes.empty());
    CHECK(unzip(archive, "a.zip")[0].bytes == "one");
    for (size_t cut = 0; cut < archive.size(); ++cut) refused(archive.substr(0, cut));
    std::string damaged = archive;
    damaged[damaged.find("one")] = 'O';
    CHECK_THROWS_WITH(stored_entries(damaged, "a.zip"), containing("'a/data.pkl' does not match its CRC-32"));
  }
  const std::string wide = with_zip64(plain);
  const size_t record = wide.size() - 22 - 76;
  for (const size_t at : {size_t{24}, size_t{32}, size_t{40}, size_t{44}, size_t{48}, size_t{55}}) {
    std::string lying = wide;
    lying[record + at] = static_cast<char>(lying[record + at] + 1);
    CHECK_THAT(refused(lying), containing("the records of zip64 do not agree"));
  }
  CHECK_THROWS_WITH(stored_entries(make_zip({{.name = "a", .bytes = "hello hello hello"}}), "a.zip"),
                    containing("the entry 'a' is compressed"));
}
