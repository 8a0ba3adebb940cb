// Downloads from a loopback server: complete, interrupted and continued, wrong, missing, hostile.
#include "heed/data/download/download.h"

#include <unistd.h>

#include "heed/core/io/hash.h"
#include "heed/data/text/parallel_text.h"
#include "heed/tests/data/loopback.h"
#include "heed/tests/data/scratch.h"
#include "heed/tests/data/zip_writer.h"

using namespace heed;

namespace {

/// Bytes that do not repeat.
std::string noise(size_t count, uint64_t seed = 1) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += static_cast<char>(counter_bits(seed, 0, i));
  return out;
}

std::string books() {
  return make_zip({{.name = "Books.en-it.en", .bytes = "The cat.\nThe dog.\nThe cat and the dog.\n"},
                   {.name = "Books.en-it.it", .bytes = "Il gatto.\nIl cane.\nIl gatto e il cane.\n"},
                   {.name = "LICENSE", .bytes = "free for research"},
                   {.name = "other/file", .bytes = "not wanted"}});
}

struct Told {
  std::string all;
  std::function<void(std::string_view)> say() {
    return [this](std::string_view line) { all += std::string(line) + "\n"; };
  }
};

/// A name that is neither the final one nor anything else is in the folder.
bool empty(const Path& folder) { return io::list(folder).empty(); }

}  // namespace

TEST_CASE("download: a file is fetched, checked, recorded, and not fetched twice") {
  const std::string bytes = noise(200000);
  const Loopback server({{"/f.bin", bytes}});
  const Scratch scratch;
  const RemoteFile file = {.url = server.url() + "/f.bin", .name = "kept.bin", .sha256 = sha256_hex(bytes)};
  Told told;
  CHECK(fetch(file, {.folder = scratch.path() / "new/folder", .say = told.say()}) == bytes);
  const Path folder = scratch.path() / "new/folder";
  CHECK(io::read(folder / "kept.bin") == bytes);
  CHECK(io::read(folder / "kept.bin.sha256") == sha256_hex(bytes) + "  kept.bin\n");
  CHECK(io::list(folder).size() == 2);
  CHECK_THAT(told.all, containing("as expected"));
  CHECK(fetch(file, {.folder = folder}) == bytes);
  CHECK(server.ranges().size() == 1);
}

TEST_CASE("download: a link where the part would grow is refused before anything is fetched") {
  const std::string bytes = noise(1000);
  const Loopback server({{"/f.bin", bytes}});
  const Scratch scratch;
  const Path folder = scratch.path() / "new", victim = scratch.path() / "victim";
  io::make_directories(folder);
  io::write(victim, "keep");
  REQUIRE(::symlink(victim.c_str(), (folder / "f.bin.part").c_str()) == 0);
  const RemoteFile file = {.url = server.url() + "/f.bin", .name = "f.bin", .sha256 = sha256_hex(bytes)};
  CHECK_THROWS_WITH(fetch(file, {.folder = folder}), containing("f.bin.part is a link to"));
  CHECK(io::read(victim) == "keep");
  CHECK(server.ranges().empty());
}

TEST_CASE("download: a broken transfer is continued where it broke") {
  const std::string bytes = noise(300000);
  const Loopback server({{"/f.bin", bytes}}, {.break_after = 100000, .breaks = 2});
  const Scratch scratch;
  const RemoteFile file = {.url = server.url() + "/f.bin", .name = "f.bin", .sha256 = sha256_hex(bytes)};
  CHECK(fetch(file, {.folder = scratch.path()}) == bytes);
  CHECK(server.ranges() == std::vector<int64_t>{-1, 100000, 200000});
}

TEST_CASE("download: a transfer that breaks for good keeps its part for the next call") {
  const std::string bytes = noise(300000);
  const Loopback server({{"/f.bin", bytes}}, {.break_after = 50000, .breaks = 2});
  const Scratch scratch;
  const RemoteFile file = {.url = server.url() + "/f.bin", .name = "f.bin", .sha256 = sha256_hex(bytes)};
  const DownloadOptions options = {.folder = scratch.path(), .transfer = {.attempts = 2}};
  CHECK_THAT(refusal(Fault::file, [&] { fetch(file, options); }), containing("100000 bytes are kept"));
  CHECK(io::size(scratch.path() / "f.bin.part") == 100000);
  CHECK_FALSE(io::exists(scratch.path() / "f.bin"));
  CHECK(fetch(file, options) == bytes);
  CHECK(server.ranges().back() == 100000);
  CHECK_FALSE(io::exists(scratch.path() / "f.bin.part"));
}

TEST_CASE("download: the rest of another file is noticed and the whole fetched again") {
  const std::string bytes = noise(100000);
  const Loopback server({{"/f.bin", bytes}});
  const Scratch scratch;
  scratch.file("f.bin.part", noise(40000, 2));
  const RemoteFile file = {.url = server.url() + "/f.bin", .name = "f.bin", .sha256 = sha256_hex(bytes)};
  CHECK(fetch(file, {.folder = scratch.path()}) == bytes);
  CHECK(server.ranges() == std::vector<int64_t>{40000, -1});
}

TEST_CASE("download: a part that is whole already, and a server without ranges") {
  const std::string bytes = noise(60000);
  const RemoteFile file = {.url = "http://elsewhere/f.bin", .name = "f.bin", .sha256 = sha256_hex(bytes)};
  for (const bool no_ranges : {false, true}) {
    const Loopback server({{"/f.bin", bytes}}, {.no_ranges = no_ranges});
    for (const size_t kept : {size_t{60000}, size_t{20000}}) {
      const Scratch scratch;
      scratch.file("f.bin.part", std::string_view(bytes).substr(0, kept));
      CHECK(fetch(file, {.folder = scratch.path(), .url = server.url()}) == bytes);
    }
  }
}

TEST_CASE("download: a wrong checksum is refused and nothing is kept") {
  const Loopback server({{"/f.bin", noise(1000)}});
  const Scratch scratch;
  const RemoteFile file = {.url = server.url() + "/f.bin", .name = "f.bin", .sha256 = std::string(64, 'a')};
  const std::string text = refusal(Fault::data, [&] { fetch(file, {.folder = scratch.path()}); });
  CHECK_THAT(text, containing(sha256_hex(noise(1000))));
  CHECK(empty(scratch.path()));
  CHECK(server.ranges().size() == 1);
}

TEST_CASE("download: an unknown checksum is recorded and later downloads are compared") {
  Loopback server({{"/f.bin", noise(1000)}});
  const Scratch scratch;
  const RemoteFile file = {.url = server.url() + "/f.bin", .name = "f.bin", .sha256 = ""};
  Told told;
  fetch(file, {.folder = scratch.path(), .say = told.say()});
  CHECK_THAT(told.all, containing("recorded"));
  std::filesystem::remove(scratch.path() / "f.bin");
  server.replace("/f.bin", noise(1000, 2));
  CHECK_THAT(refusal(Fault::data, [&] { fetch(file, {.folder = scratch.path()}); }),
             containing("expected: " + sha256_hex(noise(1000))));
  CHECK_FALSE(io::exists(scratch.path() / "f.bin"));
  scratch.file("f.bin", "changed by hand");
  CHECK_THAT(refusal(Fault::data, [&] { fetch(file, {.folder = scratch.path()}); }),
             containing("Move it away"));
}

TEST_CASE("download: what is not there, what does not answer, and no curl") {
  const Scratch scratch;
  std::string gone;
  {
    const Loopback server({{"/f.bin", std::string("x")}});
    gone = server.url();
    const RemoteFile absent = {.url = server.url() + "/none.bin", .name = "f.bin", .sha256 = ""};
    CHECK_THAT(refusal(Fault::file, [&] { fetch(absent, {.folder = scratch.path()}); }), containing("404"));
    CHECK(empty(scratch.path()));
    const RemoteFile file = {.url = server.url() + "/f.bin", .name = "f.bin", .sha256 = ""};
    const DownloadOptions no_curl = {.folder = scratch.path(),
                                     .transfer = {.program = "heed-has-no-such-program"}};
    CHECK_THAT(refusal(Fault::file, [&] { fetch(file, no_curl); }), containing("apt-get install curl"));
  }
  const RemoteFile file = {.url = gone + "/f.bin", .name = "f.bin", .sha256 = ""};
  CHECK_THAT(refusal(Fault::file, [&] { fetch(file, {.folder = scratch.path()}); }),
             containing("cannot be fetched"));
  const RemoteFile local = {.url = "file:///etc/passwd", .name = "f.bin", .sha256 = ""};
  refusal(Fault::usage, [&] { fetch(local, {.folder = scratch.path()}); });
  CHECK(empty(scratch.path()));
}

TEST_CASE("download: more than the cap is refused") {
  const Loopback server({{"/f.bin", noise(100000)}});
  const Scratch scratch;
  const RemoteFile file = {.url = server.url() + "/f.bin", .name = "f.bin", .sha256 = ""};
  CHECK_THAT(
      refusal(Fault::data, [&] { fetch(file, {.folder = scratch.path(), .transfer = {.cap = 50000}}); }),
      containing("50000"));
  CHECK(empty(scratch.path()));
}

TEST_CASE("download: an answer without a length is cut off at the cap") {
  constexpr int64_t all = 256 << 20;
  const std::string bytes = noise(1 << 16);
  const Loopback server({{"/f.bin", bytes}}, {.chunked = all});
  for (const size_t kept : {size_t{0}, size_t{100}}) {
    const Scratch scratch;
    if (kept > 0) scratch.file("f.bin.part", std::string(kept, 'a'));
    const RemoteFile file = {.url = server.url() + "/f.bin", .name = "f.bin", .sha256 = ""};
    const DownloadOptions options = {.folder = scratch.path(), .transfer = {.cap = 100000}};
    CHECK_THAT(refusal(Fault::data, [&] { fetch(file, options); }),
               containing("larger than the 100000 bytes"));
    CHECK(empty(scratch.path()));
  }
  // What lies between its socket and the file is far less.
  CHECK(server.chunked_bytes() < all / 2);
}

TEST_CASE("download: an answer without a length that fits is taken") {
  const std::string bytes = noise(1 << 16);
  const Loopback server({{"/f.bin", bytes}}, {.chunked = 1 << 16});
  for (const int64_t cap : {65536, 65535}) {
    const Scratch scratch;
    const RemoteFile file = {.url = server.url() + "/f.bin", .name = "f.bin", .sha256 = sha256_hex(bytes)};
    const DownloadOptions options = {.folder = scratch.path(), .transfer = {.cap = cap}};
    if (cap == 65536) {
      CHECK(fetch(file, options) == bytes);
    } else {
      CHECK_THAT(refusal(Fault::data, [&] { fetch(file, options); }),
                 containing("larger than the 65535 bytes"));
    }
  }
}

TEST_CASE("download: opus_books is unpacked, read and compared with what is published") {
  const Loopback server({{"/mirror/en-it.txt.zip", books()}});
  const Scratch scratch;
  Told told;
  const DownloadOptions options = {
      .folder = scratch.path() / "opus_books", .url = server.url() + "/mirror/", .say = told.say()};
  const Downloaded got = download("opus_books", options);
  CHECK_FALSE(got.as_published);
  CHECK(read_pairs(got.data).pairs.size() == 3);
  CHECK(read_pairs(options.folder).pairs[0] == Pair{"The cat.", "Il gatto."});
  CHECK(io::exists(options.folder / "LICENSE"));
  CHECK_FALSE(io::exists(options.folder / "other"));
  CHECK(told.all.find("personal, educational and research use") < told.all.find("fetching"));
  CHECK_THAT(told.all, containing("sentence pairs: 3; published: 32332"));
  CHECK_THAT(told.all, containing("published: 15698"));
  CHECK_THAT(told.all, containing("published: 22463"));
  CHECK_THAT(told.all, containing(sha256_hex(books())));
}

TEST_CASE("download: a hostile or foreign archive leaves nothing behind") {
  const std::string sides[] = {"Books.en-it.en", "Books.en-it.it"};
  const std::vector<ZipPart> good = {{.name = sides[0], .bytes = "a\n"}, {.name = sides[1], .bytes = "b\n"}};
  std::vector<ZipPart> climbing = good, linked = good, foreign = good;
  climbing.push_back({.name = "../../escaped", .bytes = "x"});
  linked.push_back({.name = "LICENSE", .bytes = "/etc/passwd", .unix_mode = 0120777});
  foreign.pop_back();
  for (const std::string& archive : {make_zip(climbing), make_zip(linked), make_zip(foreign), noise(5000)}) {
    const Loopback server({{"/en-it.txt.zip", archive}});
    const Scratch scratch;
    const Path folder = scratch.path() / "deep" / "opus_books";
    refusal(Fault::data, [&] { download("opus_books", {.folder = folder, .url = server.url()}); });
    CHECK(empty(folder));
    CHECK(io::list(scratch.path()).size() == 1);
    CHECK_FALSE(io::exists(scratch.path() / "escaped"));
  }
}

TEST_CASE("download: known names, and what is known of them") {
  const Scratch scratch;
  CHECK_THAT(refusal(Fault::usage, [&] { download("opus", {.folder = scratch.path()}); }),
             containing("tinyshakespeare"));
  refusal(Fault::usage, [&] { download("mnist", {}); });
  CHECK(remote_corpora().size() == 6);
  for (const RemoteCorpus& corpus : remote_corpora()) {
    CHECK(corpus.licence.size() > 50);
    for (const RemoteFile& file : corpus.files) {
      CHECK(file.url.starts_with("https://"));
      CHECK((file.sha256.empty() || file.sha256.size() == 64));
    }
  }
}

TEST_CASE("download: tinyshakespeare from a mirror has the known hash") {
  const Path real = real_data("tinyshakespeare.txt");
  if (real.empty()) return;
  const Loopback server({{"/input.txt", io::read(real)}});
  const Scratch scratch;
  const Downloaded got = download("tinyshakespeare", {.folder = scratch.path(), .url = server.url()});
  CHECK(got.as_published);
  CHECK(got.data == scratch.path() / "tinyshakespeare.txt");
  const Loopback wrong({{"/input.txt", std::string("To be or not to be")}});
  const Scratch other;
  refusal(Fault::data, [&] { download("tinyshakespeare", {.folder = other.path(), .url = wrong.url()}); });
  CHECK(empty(other.path()));
}
