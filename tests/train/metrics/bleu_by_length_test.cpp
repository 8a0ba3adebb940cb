// tests train/metrics/bleu_by_length.h
#include "heed/train/metrics/bleu_by_length.h"

#include "heed/tests/catch.h"
#include "heed/train/metrics/bleu.h"
#include "heed/train/report/length_chart.h"

using namespace heed;

namespace {

/// "w w w", of so many words.
std::string words(int64_t count, const std::string& word = "w") {
  std::string out;
  for (int64_t i = 0; i < count; ++i) out += (i > 0 ? " " : "") + word;
  return out;
}

}  // namespace

TEST_CASE("by length: each bucket is the corpus BLEU of its sentences alone") {
  // Sources of 1 to 12 words; those of more than five are translated wrongly.
  std::vector<std::string> sources, outputs, references;
  for (int64_t length = 1; length <= 12; ++length) {
    sources.push_back(words(length));
    references.push_back("a b c d e " + words(length, "f"));
    outputs.push_back(length <= 5 ? references.back() : "a b c d x " + words(length, "f"));
  }
  const std::vector<LengthBucket> buckets = bleu_by_length(sources, outputs, references);
  REQUIRE(buckets.size() == 3);
  CHECK((buckets[0].from == 1 && buckets[0].to == 5 && buckets[0].sentences == 5));
  CHECK((buckets[1].from == 6 && buckets[1].to == 10 && buckets[1].sentences == 5));
  CHECK((buckets[2].from == 11 && buckets[2].to == 15 && buckets[2].sentences == 2));
  CHECK(buckets[0].bleu == Approx(100));
  size_t begin = 0;
  for (const LengthBucket& one : buckets) {
    const auto count = static_cast<size_t>(one.sentences);
    const Bleu alone =
        corpus_bleu(std::span(outputs).subspan(begin, count), std::span(references).subspan(begin, count));
    CHECK(one.bleu == alone.score);
    CHECK(one.length_ratio == alone.ratio());
    begin += count;
  }
  CHECK(buckets[1].bleu < 95);
  CHECK((to_string(buckets[0]) == "1-5" && to_string(LengthBucket{.from = 7, .to = 7}) == "7"));
  // Another width, and the lines of a chart.
  const std::vector<LengthBucket> single = bleu_by_length(sources, outputs, references, 1);
  CHECK(single.size() == 12);
  const Series line = length_series("test", buckets);
  CHECK(line.x == std::vector<double>{3, 8, 13});
  CHECK(line.y == std::vector<double>{buckets[0].bleu, buckets[1].bleu, buckets[2].bleu});
  CHECK_THAT(chart_svg(length_chart({line})), containing("words of the source") && !containing("test, last"));
}

TEST_CASE("by length: words are split at white space, empty buckets are left out, and none is no crash") {
  const std::vector<std::string> sources{"", "  ", "a\tb  c\u00a0d", words(23)}, same{"x", "x", "x", "x"};
  const std::vector<LengthBucket> buckets = bleu_by_length(sources, same, same, 4);
  REQUIRE(buckets.size() == 2);
  CHECK((buckets[0].sentences == 3 && buckets[1].from == 21 && buckets[1].to == 24));
  CHECK(bleu_by_length(std::span<const ReportSample>{}).empty());
  const std::vector<ReportSample> samples{{"a b", "c d e f", "c d e f"}};
  CHECK(bleu_by_length(samples)[0].bleu == Approx(100));
  CHECK_THROWS_WITH(bleu_by_length(sources, same, same, 0), containing("0 words"));
  CHECK_THROWS_WITH(bleu_by_length(sources, {}, same), containing("0 outputs"));
}

TEST_CASE("by length: JSON gives back the same buckets") {
  const std::vector<LengthBucket> buckets{{1, 5, 12, 33.25, 0.5}, {6, 10, 3, 0, 1}};
  const std::vector<LengthBucket> again = length_buckets(parse_json(to_json(buckets).dump(), "buckets"));
  REQUIRE(again.size() == 2);
  CHECK((again[0].to == 5 && again[0].sentences == 12 && again[0].bleu == 33.25 &&
         again[0].length_ratio == 0.5));
  CHECK((again[1].from == 6 && again[1].bleu == 0));
  CHECK_THROWS(length_buckets(parse_json("[{\"from\": 1}]", "buckets")));
}
