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
