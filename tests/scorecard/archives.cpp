// Row B4: archives whose entries would leave their folder, and gzip bombs.
#include <zlib.h>

#include <algorithm>
#include <filesystem>

#include "heed/core/io/files.h"
#include "heed/tests/deflate.h"
#include "heed/tests/fuzz/mutate.h"
#include "heed/tests/fuzz/refusal.h"
#include "heed/tests/scorecard/rows.h"

namespace heed::scorecard {
namespace {

struct Entry {
  std::string name;
  std::string bytes = "x\n";
  uint32_t mode = 0100644;
  uint32_t claimed = 0;  ///< bytes more than there are
};

/// A zip archive of stored entries, as the entries say.
std::string archive_of(const std::vector<Entry>& entries) {
  std::string out, directory;
  const auto number = [](uint64_t value, int width) {
    std::string bytes;
    for (int i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
    return bytes;
  };
  for (const Entry& entry : entries) {
    const auto* data = reinterpret_cast<const Bytef*>(entry.bytes.data());
    const uint64_t crc = ::crc32(0, data, static_cast<uInt>(entry.bytes.size()));
    const std::string middle = number(0, 2) + number(0, 2) + number(0, 4) + number(crc, 4) +
                               number(entry.bytes.size(), 4) + number(entry.bytes.size() + entry.claimed, 4);
    directory += number(0x02014b50, 4) + number(20, 1) + number(3, 1) + number(20, 2) + middle +
                 number(entry.name.size(), 2) + number(0, 10) + number(entry.mode, 2) +
                 number(out.size(), 4) + entry.name;
    out += number(0x04034b50, 4) + number(20, 2) + middle + number(entry.name.size(), 2) + number(0, 2) +
           entry.name + entry.bytes;
  }
  const size_t begin = out.size();
  return out + directory + number(0x06054b50, 4) + number(0, 4) + number(entries.size(), 2) +
         number(entries.size(), 2) + number(directory.size(), 4) + number(begin, 4) + number(0, 2);
}

/// Every name below the folder, with its size.
std::vector<std::string> all_below(const Path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    names.push_back(entry.path().string() + (entry.is_regular_file() ? text(" ", entry.file_size()) : ""));
  }
  std::sort(names.begin(), names.end());
  return names;
}

const Entry english{.name = "Books.en-it.en", .bytes = "The cat.\nA man.\n"};
const Entry italian{.name = "Books.en-it.it", .bytes = "Il gatto.\nUn uomo.\n"};

/// Archives that hold what is asked for, and something else that nobody should unpack.
std::vector<std::string> hostile_archives_of(const Scene& scene, int64_t count) {
  std::vector<std::string> made;
  const std::string outside = (scene.room / "outside").string();
  for (const std::string& name :
       {std::string("../outside"), std::string("a/../../outside"), outside, std::string("../../outside"),
        std::string("..\\outside"), std::string("C:\\outside"), std::string("./../outside"),
        std::string(".."), std::string("/"), std::string("a//b"), std::string("a\0b", 3),
        std::string("a\x1b[2Jb"), std::string(300, 'a'), std::string("\xFF\xFE"),
        std::string("Books.en-it.en"), std::string("")}) {
    made.push_back(archive_of({english, italian, {.name = name, .bytes = "out\n"}}));
  }
  for (const uint32_t mode : {0120777u, 0020666u, 0060666u, 0010666u, 0140777u}) {
    made.push_back(archive_of({english, italian, {.name = "link", .bytes = outside, .mode = mode}}));
    made.push_back(archive_of({{.name = english.name, .bytes = "../outside", .mode = mode}, italian}));
  }
  made.push_back(archive_of({english, {.name = italian.name, .bytes = "x", .claimed = 0xFFFFFF00}}));
  const std::string good = archive_of({english, italian});
  for (uint64_t i = 0; static_cast<int64_t>(made.size()) < count; ++i)
    made.push_back(mutate(good, {}, i).bytes);
  return made;
}

}  // namespace

Result hostile_archives(const Scene& scene) {
  Tally tally;
  int64_t refused = 0, unpacked = 0, peak_kib = 0;
  const std::vector<std::string> archives = hostile_archives_of(scene, scene.amount(40, 200));
  for (size_t i = 0; i < archives.size(); ++i) {
    const Path folder = scene.room / "books";
    io::remove_all(folder);
    io::make_directories(folder);
    io::write(folder / "en-it.txt.zip", archives[i]);
    const auto before = all_below(scene.room.path());
    const Ended ended = run(scene.heed({"data", "get", "opus_books", "--out", "books"}));
    auto after = all_below(scene.room.path());
    peak_kib = std::max(peak_kib, ended.peak_kib);
    std::erase_if(after, [&](const std::string& name) {
      if (std::binary_search(before.begin(), before.end(), name)) return true;
      for (const char* own :
           {"Books.en-it.en", "Books.en-it.it", "README", "LICENSE", "en-it.txt.zip.sha256"}) {
        if (name.starts_with((folder / own).string() + " ")) return true;
      }
      return false;
    });
    std::string wrong;
    if (!after.empty()) wrong = "it wrote " + shown(after[0], 200);
    if (wrong.empty() && !ended.ok() && ended.code != 3) wrong = ended.said();
    if (wrong.empty() && !ended.ok()) {
      ++refused;
      const size_t at = ended.err.rfind("error: ");
      // What is in the archive may be refused too, once it is unpacked.
      const std::string name =
          ended.err.find("zip", at) != std::string::npos ? "en-it.txt.zip" : "Books.en-it";
      wrong =
          at == std::string::npos ? "no error is told" : law::fault_of_refusal(name, ended.err.substr(at));
      if (!wrong.empty()) wrong += ": " + ended.err;
    }
    unpacked += ended.ok() ? 1 : 0;
    tally.add(text("archive ", i), wrong);
  }
  const std::string sixteen = deflate(std::string(size_t{16} << 20, 'a'));
  // A thousand to one, from a mebibyte to a gibibyte.
  for (const int64_t mebibytes : {int64_t{16}, int64_t{64}, scene.amount(256, 1024)}) {
    std::string packed;  // in members, so that nothing large is held here
    for (int64_t i = 0; i < mebibytes / 16; ++i) packed += sixteen;
    for (const char* name : {"bomb.tsv.gz", "bomb.txt"}) {
      io::write(scene.room / name, packed);
      const bool pairs = name == std::string("bomb.tsv.gz");
      const Ended ended =
          run(scene.heed(pairs ? std::vector<std::string>{"data", "check", name}
                               : std::vector<std::string>{"train", "lm", "--data", name, "--name", "b"}));
      peak_kib = std::max(peak_kib, ended.peak_kib);
      const bool told = ended.code == 3 && ended.err.find(name) != std::string::npos &&
                        ended.err.find(" cap ") != std::string::npos;
      const bool light = ended.peak_kib * 1024 < static_cast<int64_t>(packed.size()) + (int64_t{96} << 20);
      tally.add(text(name, " of ", mebibytes, " MiB"),
                told && light ? "" : text(ended.said(), ", ", ended.peak_kib, " KiB"));
      io::remove_all(scene.room / "runs");
    }
  }
  return tally.result(text(" hold: ", refused, " archives refused, ", unpacked,
                           " harmless, nothing outside; bombs within ", peak_kib / 1024, " MiB"));
}

}  // namespace heed::scorecard
