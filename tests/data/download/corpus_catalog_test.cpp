// Corpora in archives from a loopback server: unpacking, errors, and reading.
#include "heed/data/download/corpus_catalog.h"

#include <algorithm>

#include "heed/data/formats/cifar.h"
#include "heed/data/formats/labelled_documents.h"
#include "heed/data/text/text.h"
#include "heed/tests/data/loopback.h"
#include "heed/tests/data/scratch.h"
#include "heed/tests/data/tar_writer.h"
#include "heed/tests/data/zip_writer.h"
#include "heed/tests/deflate.h"

using namespace heed;

namespace {

/// The corpus without the check sums of its files, so that a server may offer less than the publisher.
RemoteCorpus unchecked(std::string_view name) {
  for (RemoteCorpus corpus : remote_corpora()) {
    if (corpus.name != name) continue;
    for (RemoteFile& file : corpus.files) file.sha256.clear();
    return corpus;
  }
  FAIL("no corpus is called " << name);
  return {};
}

struct Told {
  std::string all;
  std::function<void(std::string_view)> say() {
    return [this](std::string_view line) { all += std::string(line) + "\n"; };
  }
};

std::vector<std::string> names_in(const Path& folder) {
  std::vector<std::string> names;
  for (const Path& name : io::list(folder)) names.push_back(name.string());
  return names;
}

const std::vector<TarPart> reviews = {{.name = "aclImdb/README", .bytes = "Large Movie Review Dataset"},
                                      {.name = "aclImdb/train/", .kind = '5'},
                                      {.name = "aclImdb/train/labeledBow.feat", .bytes = "9 0:9"},
                                      {.name = "aclImdb/train/pos/10_9.txt", .bytes = "Third.\tWith a tab"},
                                      {.name = "aclImdb/train/pos/2_7.txt", .bytes = "Second."},
                                      {.name = "aclImdb/train/neg/2_4.txt", .bytes = "First.<br />"},
                                      {.name = "aclImdb/train/unsup/0_0.txt", .bytes = "Nobody says."},
                                      {.name = "aclImdb/test/neg/0_1.txt", .bytes = "Bad."},
                                      {.name = "aclImdb/test/pos/0_10.txt", .bytes = "Good."}};

/// Records of a label and 3,072 bytes.
std::string pictures(int count, int first) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += static_cast<char>((first + i) % 10);
    out += std::string(3072, static_cast<char>(10 * first + i));
  }
  return out;
}

std::vector<TarPart> batches() {
  std::vector<TarPart> parts = {{.name = "cifar-10-batches-bin/", .kind = '5'},
                                {.name = "cifar-10-batches-bin/readme.html", .bytes = "<html>"},
                                {.name = "cifar-10-batches-bin/batches.meta.txt", .bytes = "airplane\n"}};
  for (int i = 1; i <= 5; ++i)
    parts.push_back({.name = text("cifar-10-batches-bin/data_batch_", i, ".bin"), .bytes = pictures(2, i)});
  parts.push_back({.name = "cifar-10-batches-bin/test_batch.bin", .bytes = pictures(3, 7)});
  return parts;
}

/// These bytes where the first file of the corpus is looked for.
std::map<std::string, std::string> offered(const RemoteCorpus& corpus, const std::string& bytes) {
  const std::string& url = corpus.files[0].url;
  std::map<std::string, std::string> files;
  files[url.substr(url.rfind('/'))] = bytes;
  return files;
}

/// Fetches the corpus from a server that offers these bytes, which must be refused and leave nothing.
std::string refused(std::string_view name, const std::string& archive) {
  const RemoteCorpus corpus = unchecked(name);
  const Loopback server(offered(corpus, archive));
  const Scratch scratch;
  const Path folder = scratch.path() / "deep" / "corpus";
  const std::string said =
      refusal(Fault::data, [&] { download(corpus, {.folder = folder, .url = server.url()}); });
  CHECK(names_in(folder).empty());
  CHECK(names_in(scratch.path()) == std::vector<std::string>{"deep"});
  return said;
}

}  // namespace

TEST_CASE("remote corpora: IMDb's archive becomes two files that the reader reads") {
  const Loopback server({{"/aclImdb_v1.tar.gz", deflate(make_tar(reviews))}});
  const Scratch scratch;
  Told told;
  const DownloadOptions options{.folder = scratch.path(), .url = server.url(), .say = told.say()};
  const Downloaded got = download(unchecked("imdb"), options);
  CHECK(got.data == scratch.path());
  CHECK_FALSE(got.as_published);
  CHECK_THAT(told.all, containing("training reviews: 3; published: 25000"));
  CHECK_THAT(told.all, containing("test reviews: 2; published: 25000"));
  CHECK(told.all.find("for research") < told.all.find("fetching"));
  CHECK(io::read(scratch.path() / "train.tsv") ==
        "0\t4\t2\tFirst.<br />\n1\t7\t2\tSecond.\n1\t9\t10\tThird.\tWith a tab\n");
  CHECK(names_in(scratch.path()) ==
        std::vector<std::string>{"aclImdb_v1.tar.gz", "aclImdb_v1.tar.gz.sha256", "test.tsv", "train.tsv"});
  const Sequences train = read_imdb(got.data, false), test = read_imdb(got.data, true);
  CHECK(train.labels == std::vector<uint8_t>{0, 1, 1});
  CHECK(train.at(2) == "Third.\tWith a tab");
  CHECK(test.labels == std::vector<uint8_t>{0, 1});
  std::filesystem::remove(scratch.path() / "train.tsv");
  download(unchecked("imdb"), options);  // what is there already is unpacked again
  CHECK(read_imdb(got.data, false).sha256() == train.sha256());
  CHECK(server.ranges().size() == 1);
}

TEST_CASE("remote corpora: an archive that is not IMDb's, or lies, leaves nothing behind") {
  const auto with = [](const TarPart& part) {
    std::vector<TarPart> parts = reviews;
    parts.push_back(part);
    return deflate(make_tar(parts));
  };
  CHECK_THAT(refused("imdb", with({.name = "aclImdb/train/pos/../../../../x", .bytes = "out"})),
             containing("leaves its folder"));
  CHECK_THAT(refused("imdb", with({.name = "aclImdb/train/pos/3_8.txt", .kind = '2', .link = "/etc/passwd"})),
             containing("is a link"));
  for (const char* name :
       {"3_4.txt", "3_11.txt", "x_8.txt", "3_8", "_8.txt", "3_.txt", "-3_8.txt", "38.txt"}) {
    INFO(name);
    CHECK_THAT(refused("imdb", with({.name = text("aclImdb/train/pos/", name), .bytes = "x"})),
               containing(name));
  }
  CHECK_THAT(refused("imdb", with({.name = "aclImdb/test/pos/3_8.txt", .bytes = "two\nlines"})),
             containing("line end"));
  CHECK_THAT(refused("imdb", deflate(make_tar({reviews.begin(), reviews.end() - 1}))),
             containing("no review in test/pos"));
  CHECK_THAT(refused("imdb", deflate("no archive")), containing("aclImdb_v1.tar.gz"));
  CHECK_THAT(refused("imdb", make_tar(reviews)), containing("not a gzip file"));
  CHECK_THAT(refused("imdb", deflate(std::string(size_t{8} << 20, '\0'))), containing("100 times"));
}

TEST_CASE("remote corpora: CIFAR-10's archive becomes the files of its batches") {
  const Loopback server({{"/cifar-10-binary.tar.gz", deflate(make_tar(batches()))}});
  const Scratch scratch;
  Told told;
  const Downloaded got =
      download(unchecked("cifar10"), {.folder = scratch.path(), .url = server.url(), .say = told.say()});
  CHECK_FALSE(got.as_published);
  CHECK_THAT(told.all, containing("training pictures: 10; published: 50000"));
  CHECK_THAT(told.all, containing("test pictures: 3; published: 10000"));
  CHECK(io::read(scratch.path() / "data_batch_3.bin") == pictures(2, 3));
  CHECK(io::exists(scratch.path() / "batches.meta.txt"));
  CHECK_FALSE(io::exists(scratch.path() / "readme.html"));
  CHECK(read_cifar(got.data, false).labels == std::vector<uint8_t>{1, 2, 2, 3, 3, 4, 4, 5, 5, 6});
  CHECK(read_cifar(got.data, true).count() == 3);
}

TEST_CASE("remote corpora: an archive that is not CIFAR-10's leaves nothing behind") {
  std::vector<TarPart> short_of = batches(), torn = batches(), outside = batches(), twice = batches();
  short_of.erase(short_of.begin() + 5);
  torn.back().bytes.pop_back();
  outside.push_back({.name = "../test_batch.bin", .bytes = "x"});
  twice.push_back({.name = "other/test_batch.bin", .bytes = pictures(1, 1)});
  CHECK_THAT(refused("cifar10", deflate(make_tar(short_of))), containing("no data_batch_3.bin"));
  CHECK_THAT(refused("cifar10", deflate(make_tar(torn))), containing("test_batch.bin"));
  CHECK_THAT(refused("cifar10", deflate(make_tar(outside))), containing("leaves its folder"));
  CHECK_THAT(refused("cifar10", deflate(make_tar(twice))), containing("test_batch.bin"));
  const std::string whole = deflate(make_tar(batches()));
  refused("cifar10", whole.substr(0, whole.size() / 2));
}

TEST_CASE("remote corpora: WikiText-2's three texts come out of its folder") {
  const std::vector<ZipPart> parts = {{.name = "wikitext-2/wiki.test.tokens", .bytes = " \n = A = \n"},
                                      {.name = "wikitext-2/wiki.valid.tokens", .bytes = " one <unk> \n"},
                                      {.name = "wikitext-2/wiki.train.tokens", .bytes = " one two \n \n"}};
  const Loopback server({{"/wikitext-2-v1.zip", make_zip(parts)}});
  const Scratch scratch;
  Told told;
  const Downloaded got =
      download(unchecked("wikitext2"), {.folder = scratch.path(), .url = server.url(), .say = told.say()});
  CHECK(got.data == scratch.path() / "wiki.train.tokens");
  CHECK(io::read(got.data) == " one two \n \n");
  CHECK_THAT(told.all, containing("tokens of wiki.train.tokens: 4; published: 2088628"));
  CHECK_THAT(told.all, containing("tokens of wiki.test.tokens: 5; published: 245569"));
  CHECK(io::exists(scratch.path() / "wiki.valid.tokens"));
  CHECK_THAT(refused("wikitext2", make_zip({parts[0], parts[1]})),
             containing("wikitext-2/wiki.train.tokens"));
}

TEST_CASE("remote corpora: the published numbers of tokens are those of the real texts") {
  for (const auto& [name, tokens] : {std::pair{"wiki.valid.tokens", 217646}, {"wiki.test.tokens", 245569}}) {
    const Path real = real_data(text("wikitext-2/", name));
    if (real.empty()) return;
    const std::string bytes = io::read(real);
    CHECK(blank_separated_words(bytes) + std::count(bytes.begin(), bytes.end(), '\n') == tokens);
  }
}

TEST_CASE("remote corpora: another file under the name of a known one is refused by its check sum") {
  for (const char* name : {"cifar10", "imdb", "mnist", "wikitext2"}) {
    const RemoteCorpus corpus = unchecked(name);
    const Loopback server(offered(corpus, deflate(make_tar(reviews))));
    const Scratch scratch;
    CHECK_THAT(refusal(Fault::data, [&] { download(name, {.folder = scratch.path(), .url = server.url()}); }),
               containing("SHA-256"));
    CHECK(names_in(scratch.path()).empty());
  }
}

TEST_CASE("remote corpora: real reviews come back byte for byte", "[slow]") {
  const Path real = real_data("imdb/train.tsv.gz");
  if (real.empty()) return;
  const std::string rows = io::read_text(real);
  std::vector<TarPart> parts = {reviews.end() - 2, reviews.end()};
  for (const std::string_view line : split_lines(rows)) {
    const std::vector<std::string_view> fields = split_fields(line, '\t');
    const size_t before = fields[0].size() + fields[1].size() + fields[2].size() + 3;
    parts.push_back({.name = text("aclImdb/train/", fields[0] == "1" ? "pos/" : "neg/", fields[2], "_",
                                  fields[1], ".txt"),
                     .bytes = std::string(line.substr(before))});
  }
  std::reverse(parts.begin(), parts.end());
  const Loopback server({{"/aclImdb_v1.tar.gz", deflate(make_tar(parts))}});
  const Scratch scratch;
  Told told;
  download(unchecked("imdb"), {.folder = scratch.path(), .url = server.url(), .say = told.say()});
  CHECK_THAT(told.all, containing("training reviews: 25000, as published"));
  CHECK((io::read(scratch.path() / "train.tsv") == rows));
}
