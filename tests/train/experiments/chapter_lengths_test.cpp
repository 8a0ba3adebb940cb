// The table chapter-lengths in a short form: BLEU by length, alignments, and heed evaluate --by-length.
#include "heed/core/io/json.h"
#include "heed/tests/train/shell.h"
#include "heed/train/metrics/bleu_by_length.h"

using namespace heed;

namespace {

/// Four steps of a small model: nothing is learned, and everything is written.
const std::vector<std::string> four_steps{
    "--steps",           "4",   "--validate-every", "2",  "--num-examples", "300",
    "--validation",      "20",  "--test-size",      "40", "--bleu-pairs",   "4",
    "--data.vocabulary", "300", "--d-model",        "16", "--batch-tokens", "200",
    "--threads",         "1",   "--quiet"};

std::vector<std::string> table_of(const std::string& rows) {
  return with({"reproduce", "chapter-lengths", "--rows", rows}, four_steps);
}

int64_t sentences_in(const std::vector<LengthBucket>& buckets) {
  int64_t out = 0;
  for (const LengthBucket& one : buckets) out += one.sentences;
  return out;
}

}  // namespace

TEST_CASE(
    "chapter-lengths: rows with and without attention have their BLEU by length, and those with a map it") {
  const Shell shell;
  const Result result =
      shell.run(table_of("Fixed/Phrasebook,Luong-local-p/Phrasebook,Transformer/Phrasebook"));
  CAPTURE(result.err, result.out);
  REQUIRE(result.code == 0);
  const Path folder = shell.scratch / "runs" / "reproduce-chapter-lengths", results = folder / "results";
  CHECK_THAT(io::read(folder / "reproduce.csv"),
             containing("Fixed/Phrasebook,") && containing("\nTransformer/Phrasebook,"));
  const std::string page = io::read(results / "chapter-lengths.md");
  CHECK_THAT(page, containing("## Phrasebook by length") && containing("| words of the source |") &&
                       containing("| Fixed |") && containing("| Luong-local-p |") &&
                       containing("](chapter-lengths-Phrasebook-by-length.svg)") &&
                       containing("](chapter-lengths-Phrasebook-Luong-local-p-alignment.svg)") &&
                       !containing("Fixed-alignment"));
  const std::string csv = io::read(results / "chapter-lengths-Phrasebook-by-length.csv");
  CHECK_THAT(csv,
             containing("row,from,to,sentences,bleu,length_ratio\n") && containing("\nTransformer,1,5,"));
  const std::string map = io::read(results / "chapter-lengths-Phrasebook-Transformer-alignment.svg");
  CHECK_THAT(map, containing("<svg") && containing("Transformer/Phrasebook"));
  // What the runs hold: no attention in the first, the same sentences in all, and every test sentence once.
  for (const Path& name : io::list(folder / "runs")) {
    const Path run = folder / "runs" / name.filename();
    const Json scores = parse_json(io::read(run / "scores.json"), "scores");
    CHECK(sentences_in(length_buckets(scores.at("by_length"))) == 40);
    CHECK_THAT(io::read(run / "report.html"), containing("BLEU by length of the source"));
    const bool fixed = name.filename().string().starts_with("Fixed");
    CHECK((io::read(run / "config.toml").find("cross = \"none\"") != std::string::npos) == fixed);
  }
  // The page is made again from the runs that are there.
  io::remove_all(results);
  const Result again =
      shell.run(table_of("Fixed/Phrasebook,Luong-local-p/Phrasebook,Transformer/Phrasebook"));
  CHECK(again.code == 0);
  CHECK(io::read(results / "chapter-lengths-Phrasebook-by-length.csv") == csv);
}

TEST_CASE("evaluate --by-length: text, JSON and a page, of translators alone") {
  const Shell shell;
  REQUIRE(shell.run(with({"train", "translate-lengths", "--name", "short", "--wiring", "cho"}, four_steps))
              .code == 0);
  const std::string run = "runs/short";
  const Result words = shell.run({"evaluate", run, "--by-length", "--threads", "1"});
  CAPTURE(words.err, words.out);
  REQUIRE(words.code == 0);
  CHECK_THAT(words.out, containing("sentences") && containing("\n  1-5 ") && containing("by-length.html"));
  const std::string page = io::read(shell.scratch / run / "by-length.html");
  CHECK_THAT(page, containing("BLEU by length of the source") && containing("1-5 words"));
  const Result json =
      shell.run({"evaluate", run, "--by-length", "--bucket-words", "3", "--json", "--threads", "1"});
  REQUIRE(json.code == 0);
  const Json all = parse_json(json.out, "evaluation");
  const std::vector<LengthBucket> buckets = length_buckets(all.at("by_length"));
  CHECK(sentences_in(buckets) == 40);
  for (const LengthBucket& one : buckets) CHECK((one.to - one.from == 2 && one.from % 3 == 1));
  const Result plain = shell.run({"evaluate", run, "--json", "--threads", "1"});
  CHECK(parse_json(plain.out, "evaluation").find("by_length") == nullptr);
  CHECK(parse_json(plain.out, "evaluation").at("bleu").real() == all.at("bleu").real());
  check_refused(shell, {"evaluate", run, "--bucket-words", "3"}, 2, {"--bucket-words goes with --by-length"});
  check_refused(shell, {"evaluate", run, "--by-length", "--bucket-words", "0"}, 2, {"at least 1"});
  check_refused(shell, {"inspect", run}, 2, {"no maps", "--wiring sutskever or cho"});
  REQUIRE(shell
              .run({"train", "recall", "--steps", "1", "--test-size", "8", "--validation", "8", "--name",
                    "other", "--quiet"})
              .code == 0);
  const Result refused = shell.run({"evaluate", "runs/other", "--by-length"});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, containing("--by-length is for translators") && containing("recall"));
}
