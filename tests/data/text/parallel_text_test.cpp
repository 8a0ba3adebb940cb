// Sentence pairs from every format, and errors.
#include "heed/data/text/parallel_text.h"

#include "heed/core/io/hash.h"
#include "heed/tests/data/scratch.h"
#include "heed/tests/deflate.h"

using namespace heed;

namespace {

const std::vector<Pair> two = {{"The cat.", "Il gatto."}, {"Coffee?", "Caffè?"}};

std::string refused(const Scratch& scratch, std::string_view bytes, const std::string& name = "c.tsv") {
  const Path path = scratch.file(name, bytes);
  return refusal(Fault::data, [&] { read_pairs(path); });
}

}  // namespace

TEST_CASE("parallel text: TSV plain and gzip, LF and CRLF, with a byte order mark") {
  const Scratch scratch;
  const std::string plain = "The cat.\tIl gatto.\nCoffee?\tCaffè?\n";
  const std::string crlf = "\xEF\xBB\xBFThe cat.\tIl gatto.\r\n Coffee? \t Caffè? ";
  for (const std::string& bytes : {plain, crlf, deflate(plain), deflate(crlf)}) {
    const PairFile file = read_pairs(scratch.file("c.tsv", bytes));
    CHECK(file.pairs == two);
    CHECK(file.format == "tsv");
    CHECK(file.lines == 2);
    CHECK(file.empty == 0);
    REQUIRE(file.files.size() == 1);
    CHECK(file.files[0].sha256 == sha256_hex(bytes));
    CHECK(file.files[0].bytes == static_cast<int64_t>(bytes.size()));
  }
}

TEST_CASE("parallel text: a pair of files by prefix or folder, plain or gzip") {
  const Scratch scratch;
  scratch.file("corpus.en", "The cat.\nCoffee?\n");
  scratch.file("corpus.it.gz", deflate("Il gatto.\r\nCaffè?"));
  scratch.file("README", "not a pair");
  scratch.file("other.en", "alone");
  for (const Path& path : {scratch.path() / "corpus", scratch.path()}) {
    const PairFile file = read_pairs(path);
    CHECK(file.pairs == two);
    CHECK(file.format == "text pair");
    CHECK(file.files.size() == 2);
  }
  const PairFile back = read_pairs(scratch.path(), {.source = "it", .target = "en"});
  CHECK(back.pairs[0] == Pair{"Il gatto.", "The cat."});
  scratch.file("other.it", "solo");
  CHECK_THAT(refusal(Fault::file, [&] { read_pairs(scratch.path()); }), containing("holds 2: corpus, other"));
  CHECK_THAT(refusal(Fault::file, [&] { read_pairs(scratch.path() / "none"); }), containing("none.en"));
  CHECK_THAT(refusal(Fault::data, [&] { read_pairs(scratch.path() / "corpus.en"); }), containing("prefix"));
}

TEST_CASE("parallel text: an empty folder and a side that is missing") {
  const Scratch scratch;
  CHECK_THAT(refusal(Fault::file, [&] { read_pairs(scratch.path()); }), containing("holds 0"));
  scratch.file("corpus.en", "a\n");
  CHECK_THAT(refusal(Fault::file, [&] { read_pairs(scratch.path() / "corpus"); }),
             containing("one side is missing"));
}

TEST_CASE("parallel text: sides of different length") {
  const Scratch scratch;
  scratch.file("corpus.en", "a\nb\nc\n");
  scratch.file("corpus.it", "a\nb\n");
  const std::string text = refusal(Fault::data, [&] { read_pairs(scratch.path() / "corpus"); });
  CHECK_THAT(text, containing("3 lines"));
  CHECK_THAT(text, containing("has 2"));
}

TEST_CASE("parallel text: JSON lines, with and without ids") {
  const Scratch scratch;
  const std::string bytes = R"({"id": "0", "translation": {"en": "The cat.", "it": "Il gatto."}})"
                            "\n\n"
                            R"({"translation": {"de": "x", "it": "Caff\u00e8?", "en": "Coffee?"}})"
                            "\r\n";
  for (const std::string& stored : {bytes, deflate(bytes)}) {
    const PairFile file = read_pairs(scratch.file("c.jsonl", stored));
    CHECK(file.pairs == two);
    CHECK(file.format == "json lines");
  }
  CHECK(read_pairs(scratch.file("c.jsonl", bytes), {.source = "it", .target = "en"}).pairs[0].source ==
        "Il gatto.");
}

TEST_CASE("parallel text: JSON lines may have tabs between tokens, and sentences braces") {
  const Scratch scratch;
  const PairFile file =
      read_pairs(scratch.file("c.jsonl",
                              "{\"translation\":\t{\"en\": \"The cat.\",\t\"it\": \"Il gatto.\"}}\n"
                              "{\"translation\": {\"en\": \"Coffee?\", \"it\": \"Caff\u00e8?\"}}\n"));
  CHECK(file.format == "json lines");
  CHECK(file.pairs == two);
  CHECK_THAT(refused(scratch, "{\"translation\": {\"en\": \"a\tb\", \"it\": \"c\"}}\n"),
             containing("c.tsv:1"));
  CHECK_THAT(refused(scratch, "{\"en\":\t\"a\"}\n"), containing("c.tsv:1: no \"translation\""));
  const PairFile braces = read_pairs(scratch.file("b.tsv", "{smiling}\t{sorridendo}\n{a: \"b\"}\tc\n"));
  CHECK(braces.format == "tsv");
  CHECK((braces.pairs[0] == Pair{"{smiling}", "{sorridendo}"}));
}

TEST_CASE("parallel text: JSON lines that are refused name file and line") {
  const Scratch scratch;
  const std::string good = R"({"translation": {"en": "a", "it": "b"}})"
                           "\n";
  CHECK_THAT(refused(scratch, good + R"({"translation": {"en": "a")"), containing("c.tsv:2"));
  CHECK_THAT(refused(scratch, good + R"({"text": "a"})"), containing("c.tsv:2: no \"translation\""));
  CHECK_THAT(refused(scratch, good + R"({"translation": ["a", "b"]})"), containing("c.tsv:2"));
  CHECK_THAT(refused(scratch, good + R"({"translation": {"en": "a", "fr": "b"}})"), containing("en, fr"));
  CHECK_THAT(refused(scratch, good + R"({"translation": {"en": "a", "it": 3}})"), containing("'it'"));
  CHECK_THAT(refused(scratch, good + R"({"translation": {"en": "a", "it": "b", "it": "c"}})"),
             containing("c.tsv:2"));
  CHECK_THAT(refused(scratch, good + R"({"translation": {"en": "a\u0000", "it": "b"}})"), containing("NUL"));
  CHECK_THAT(refused(scratch, good + "plain"), containing("c.tsv:2"));
  CHECK_THAT(refused(scratch, "[{\"translation\": {}}]"), containing("one object a line"));
}

TEST_CASE("parallel text: malformed TSV names file and line") {
  const Scratch scratch;
  const std::string good = "a\tb\n";
  CHECK_THAT(refused(scratch, good + "no tab here\n"), containing("c.tsv:2: no tab"));
  CHECK_THAT(refused(scratch, good + good + "a\tb\tc\n"), containing("c.tsv:3: 2 tabs"));
  CHECK_THAT(refused(scratch, good + "caff\xE8\tb\n"), containing("c.tsv:2:5"));
  CHECK_THAT(refused(scratch, good + std::string("a\0\tb\n", 5)), containing("c.tsv:2:2: a NUL"));
  CHECK_THAT(refused(scratch, good + std::string(2 << 20, 'x') + "\tb\n"),
             containing("c.tsv:2: the line has"));
  CHECK_THAT(refused(scratch, ""), containing("empty"));
  CHECK_THAT(refused(scratch, "\xEF\xBB\xBF\n \n"), containing("empty"));
  CHECK_THAT(refused(scratch, "PK\x03\x04..."), containing("zip archive"));
  CHECK_THAT(refused(scratch, "PAR1..."), containing("parquet"));
  CHECK_THAT(refused(scratch, "a\t \n\t\n"), containing("no pair"));
}

TEST_CASE("parallel text: pairs with an empty side are counted and left out") {
  const Scratch scratch;
  const PairFile file = read_pairs(scratch.file("c.tsv", "a\tb\n\nc\t \n\td\ne\tf\n"));
  CHECK(file.pairs == std::vector<Pair>{{"a", "b"}, {"e", "f"}});
  CHECK(file.lines == 5);
  CHECK(file.empty == 3);
  CHECK_THAT(file.first_empty, containing("c.tsv:2"));
}

TEST_CASE("parallel text: damaged gzip, and what is no file") {
  const Scratch scratch;
  const std::string packed = deflate("The cat.\tIl gatto.\nCoffee?\tCaffè?\n");
  for (size_t cut = 3; cut < packed.size(); ++cut) refused(scratch, packed.substr(0, cut), "c.tsv.gz");
  CHECK_THAT(refusal(Fault::file, [&] { read_pairs(scratch.path() / "none.tsv"); }), containing("none.tsv"));
  CHECK_THAT(refusal(Fault::usage, [] { read_pairs(std::span<const Path>{}); }), containing("no path"));
}

TEST_CASE("parallel text: several files are one") {
  const Scratch scratch;
  const std::vector<Path> paths = {scratch.file("a.tsv", "The cat.\tIl gatto.\n"),
                                   scratch.file("b.tsv", "Coffee?\tCaffè?\n")};
  const PairFile file = read_pairs(paths);
  CHECK(file.pairs == two);
  CHECK(file.files.size() == 2);
}

TEST_CASE("parallel text: mutated files are read or refused, never crash") {
  const Scratch scratch;
  const std::string seeds[] = {
      "The cat.\tIl gatto.\nCoffee?\tCaffè?\r\n",
      R"({"translation": {"en": "a", "it": "b\u00e8"}})"
      "\n"
      R"({"id":1,"translation": {"en": "c", "it": "d"}})",
      deflate("The cat.\tIl gatto.\nCoffee?\tCaffè?\n"),
  };
  for (const std::string& seed : seeds) {
    for (uint64_t i = 0; i < 300; ++i) {
      const Path path = scratch.file("m.tsv", damaged(damaged(seed, i), i + 5000));
      accepted([&] { read_pairs(path); });
    }
  }
}
