// The tar reader, on good archives and on hostile ones.
#include "heed/data/formats/tar.h"

#include "heed/tests/data/scratch.h"
#include "heed/tests/data/tar_writer.h"

using namespace heed;

namespace {

std::string refused(const std::string& archive, const TarLimits& limits = {}) {
  return refusal(Fault::data, [&] { untar(archive, "a.tar", limits); });
}

}  // namespace

TEST_CASE("tar: files, folders, padding and both ways to write a long name") {
  const std::string deep(120, 'd'), gnu("ustar  \0", 8);
  const std::string archive = make_tar({
      {.name = "./", .kind = '5'},
      {.name = "./folder/", .kind = '5', .magic = gnu},
      {.name = "./folder/a.txt", .bytes = "The cat.\n", .magic = gnu},
      {.name = "folder/block", .bytes = std::string(512, 'x')},
      {.name = "empty"},
      {.name = "old/", .kind = '\0', .magic = ""},
      {.name = "old/file", .bytes = "before ustar", .kind = '\0', .magic = ""},
      {.name = "last", .bytes = "far down", .prefix = "a/b"},
      {.name = "././@LongLink", .bytes = "g/" + deep + std::string(1, '\0'), .kind = 'L', .magic = gnu},
      {.name = "g/" + deep, .bytes = "gnu", .magic = gnu},
      {.name = "pax", .bytes = pax_record("mtime", "1.5") + pax_record("path", "p/" + deep), .kind = 'x'},
      {.name = "cut", .bytes = "pax"},
      {.name = "all", .bytes = pax_record("comment", "=of all="), .kind = 'g'},
      {.name = "after", .bytes = "plain again"},
  });
  const std::vector<TarEntry> entries = untar(archive, "a.tar");
  std::vector<std::pair<std::string, std::string>> found;
  for (const TarEntry& entry : entries) found.emplace_back(entry.name, entry.bytes);
  CHECK(found == std::vector<std::pair<std::string, std::string>>{{"folder/a.txt", "The cat.\n"},
                                                                  {"folder/block", std::string(512, 'x')},
                                                                  {"empty", ""},
                                                                  {"old/file", "before ustar"},
                                                                  {"a/b/last", "far down"},
                                                                  {"g/" + deep, "gnu"},
                                                                  {"p/" + deep, "pax"},
                                                                  {"after", "plain again"}});
  CHECK(entries[0].bytes.data() > archive.data());
  CHECK(entries[0].bytes.data() < archive.data() + archive.size());
  CHECK(untar(make_tar({}), "a.tar").empty());
}

TEST_CASE("tar: names that leave the folder are refused, however they are given") {
  const TarPart good{.name = "good", .bytes = "1"};
  for (const char* name : {"../x", "a/../../x", "/etc/x", "a//x", ".//x", "a/./x", "..", "a\\..\\x", "C:x",
                           "a\nb", "\xFF", "../", "a/../", "./../x", "."}) {
    INFO(name);
    CHECK_THAT(refused(make_tar({good, {.name = name, .bytes = "2"}})), containing("byte 1024"));
    refused(make_tar({good, {.name = name, .kind = '5'}}));
    refused(make_tar({good, {.name = "l", .bytes = name, .kind = 'L'}, {.name = "x", .bytes = "2"}}));
    refused(make_tar(
        {good, {.name = "l", .bytes = pax_record("path", name), .kind = 'x'}, {.name = "x", .bytes = "2"}}));
  }
  refused(make_tar({{.name = "x", .bytes = "2", .prefix = "/etc"}}));
  refused(make_tar({{.name = "x", .bytes = "2", .prefix = ".."}}));
  refused(make_tar({{.name = "", .bytes = "2"}}));
  refused(make_tar({{.name = "l", .bytes = std::string(300, 'a'), .kind = 'L'}, {.name = "x"}}));
  CHECK_THAT(refused(make_tar({{.name = "a/", .bytes = "2"}})), containing("named as a folder"));
}

TEST_CASE("tar: links, devices, repeats and lies are refused by name") {
  for (const char kind : {'1', '2'})
    CHECK_THAT(refused(make_tar({{.name = "l", .kind = kind, .link = "/etc/passwd"}})),
               containing("'l' is a link"));
  for (const char kind : {'3', '4', '6', 'S', 'V', 'K', 'q'})
    CHECK_THAT(refused(make_tar({{.name = "d", .kind = kind}})), containing("neither a file nor a folder"));
  CHECK_THAT(refused(make_tar({{.name = "a", .bytes = "x"}, {.name = "./a", .bytes = "y"}})),
             containing("twice"));
  CHECK_THAT(refused(make_tar({{.name = "a", .bytes = "x", .wrong_sum = true}})),
             containing("sum of a header"));
  CHECK_THAT(refused(make_tar({{.name = "a", .bytes = "x", .claimed_size = 90000}})),
             containing("announces 90000"));
  CHECK_THAT(refused(make_tar({{.name = "a", .size_text = std::string("\x80\0\0\0\0\0\0\1", 8)}})),
             containing("no octal number"));
  CHECK_THAT(refused(make_tar({{.name = "a", .size_text = "7777777777777"}})), containing("announces"));
  CHECK_THAT(refused(make_tar({{.name = "d/", .bytes = "x", .kind = '5'}})), containing("has bytes"));
  CHECK_THAT(refused(make_tar({{.name = "p", .bytes = pax_record("path", "a"), .kind = 'g'}})),
             containing("all entries"));
  for (const char* key : {"size", "linkpath", "GNU.sparse.major"}) {
    CHECK_THAT(refused(make_tar({{.name = "p", .bytes = pax_record(key, "1"), .kind = 'x'}, {.name = "a"}})),
               containing(key));
  }
  for (const char* records :
       {"5 a=", "99 a=b\n", "x a=b\n", "4 a\n", "3 \n", "0 a=b\n", "18446744073709551615 a=b\n"})
    refused(make_tar({{.name = "p", .bytes = records, .kind = 'x'}, {.name = "a"}}));
  CHECK_THAT(refused(make_tar({{.name = "l", .bytes = "name", .kind = 'L'}})), containing("is not there"));
}

TEST_CASE("tar: an archive that is cut, goes on behind its end, or is too much is refused") {
  const std::string whole =
      make_tar({{.name = "a", .bytes = std::string(700, 'x')}, {.name = "b", .bytes = "y"}});
  for (size_t size = 0; size < 3584; size += size % 512 == 0 || size % 512 == 511 ? 1 : 255) {
    INFO(size);
    refused(whole.substr(0, size));
  }
  CHECK(untar(whole.substr(0, 3584), "a.tar").size() == 2);
  std::string behind = whole;
  behind.back() = 'x';
  CHECK_THAT(refused(behind), containing(text("byte ", behind.size() - 1)));
  CHECK_THAT(refused(whole, {.entries = 1}), containing("more than the 1 entries"));
  CHECK_THAT(refused("not an archive"), containing("cut short"));
  CHECK_THAT(refused(std::string(2000, 'n')), containing("a.tar"));
}
