// Readers of IMDb and of pairs of papers.
#include "heed/data/formats/labelled_documents.h"

#include <filesystem>

#include "heed/tests/data/scratch.h"
#include "heed/tests/deflate.h"

using namespace heed;

TEST_CASE("reviews: one a line, and the text may hold tabs") {
  const Sequences set = parse_reviews("1\t9\t0\tGood\tfilm.\n0\t2\t1\tDull <br />\r\n", "x.tsv");
  CHECK(set.labels == std::vector<uint8_t>{1, 0});
  CHECK(set.at(0) == "Good\tfilm.");
  CHECK(set.at(1) == "Dull <br />");
  // A byte order mark is part of no label.
  CHECK(parse_reviews("\xEF\xBB\xBF"
                      "1\t9\t0\tGood\tfilm.\n0\t2\t1\tDull <br />\r\n",
                      "x.tsv")
            .sha256() == set.sha256());
}

TEST_CASE("reviews: lines that are none are refused with their number") {
  const auto refused = [](const std::string& bytes) {
    return refusal(Fault::data, [&] { parse_reviews(bytes, "x.tsv"); });
  };
  CHECK_THAT(refused("1\t9\t0\ta\n1\t9\tb\n"), containing("x.tsv:2: '1"));
  CHECK_THAT(refused("2\t9\t0\ta\n"), containing("x.tsv:1: the label is '2'"));
  CHECK_THAT(refused("\n\n"), containing("no review"));
}

TEST_CASE("reviews: a folder of files, or of packed lines") {
  const Scratch scratch;
  for (const char* part : {"train/neg", "train/pos", "test/neg", "test/pos"})
    std::filesystem::create_directories(scratch.path() / part);
  scratch.file("train/neg/0_1.txt", "bad");
  scratch.file("train/neg/1_2.txt", "poor");
  scratch.file("train/pos/0_9.txt", "fine");
  scratch.file("train/pos/1_8.txt", "better");
  scratch.file("train/pos/2_8.txt", "good");
  scratch.file("train/pos/notes", "no review");
  scratch.file("test/neg/0_1.txt", "worse");
  scratch.file("test/pos/0_9.txt", "best");
  const Sequences set = read_imdb(scratch.path(), false);
  CHECK(set.labels == std::vector<uint8_t>{0, 1, 0, 1, 1});  // in turn
  CHECK(set.at(2) == "poor");
  CHECK(set.at(3) == "better");
  CHECK(set.at(4) == "good");
  CHECK(read_imdb(scratch.path(), true).at(1) == "best");
  const Scratch other;
  other.file("train.tsv.gz", deflate("1\t9\t0\tfine\n"));
  CHECK(read_imdb(other.path(), false).at(0) == "fine");
  CHECK_THAT(refusal(Fault::file, [&] { read_imdb(other.path(), true); }), containing("test.tsv"));
  write_reviews(other.path() / "out", set, set);
  CHECK(read_imdb(other.path() / "out", true).sha256() == set.sha256());
}

TEST_CASE("reviews: the real ones are all there") {
  const Path folder = real_data("imdb");
  if (folder.empty()) return;
  const Sequences set = read_imdb(folder, false);
  CHECK(set.count() == 25000);
  CHECK(std::count(set.labels.begin(), set.labels.end(), uint8_t{1}) == 12500);
  CHECK(set.bytes.size() == 33132823);
}

TEST_CASE("document pairs: two texts a line, cut to their first bytes") {
  const Sequences set =
      parse_document_pairs("1.0\ta\tb\tfirst text\tsecond\n0\tc\td\tthird\tfourth\n", "p", 6);
  CHECK(set.parts == 2);
  CHECK(set.count() == 2);
  CHECK(set.at(0, 0) == "first ");
  CHECK(set.at(0, 1) == "second");
  CHECK(set.at(1, 1) == "fourth");
  CHECK(set.labels == std::vector<uint8_t>{1, 0});
  CHECK(parse_document_pairs("\xEF\xBB\xBF"
                             "0\tc\td\tthird\tfourth\n",
                             "p")
            .at(0, 1) == "fourth");
  const auto refused = [](const std::string& bytes) {
    return refusal(Fault::data, [&] { parse_document_pairs(bytes, "p"); });
  };
  CHECK_THAT(refused("1\ta\tb\tfirst\n"), containing("p:1: '1"));
  CHECK_THAT(refused("1\ta\tb\tc\td\nyes\ta\tb\tc\td\n"), containing("p:2: the label is 'yes'"));
  CHECK_THAT(refused(""), containing("no pair"));
}

TEST_CASE("document pairs: the release's names, or plain ones") {
  const Scratch scratch;
  const Sequences set = parse_document_pairs("1\t0\t1\ta b\tc d\n0\t2\t3\te\tf\n", "p");
  write_document_pairs(scratch.path(), {set, set.slice(0, 1), set.slice(1, 2)});
  CHECK(read_document_pairs(scratch.path(), "train").at(0, 1) == "c d");
  CHECK(read_document_pairs(scratch.path(), "eval").count() == 1);
  scratch.file("plain/none", "");
  CHECK_THAT(refusal(Fault::file, [&] { read_document_pairs(scratch.path() / "plain", "test"); }),
             containing("new_aan_pairs.test.tsv"));
}
