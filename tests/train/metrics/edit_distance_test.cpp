// Edit distance by hand, error rates against jiwer.
#include "heed/train/metrics/edit_distance.h"

#include <algorithm>
#include <vector>

#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/score_goldens.h"

using namespace heed;

namespace {

std::vector<int64_t> units(std::string_view letters) { return {letters.begin(), letters.end()}; }

/// The definition, without a table.
int64_t plain_distance(std::span<const int64_t> a, std::span<const int64_t> b) {
  if (a.empty() || b.empty()) return static_cast<int64_t>(a.size() + b.size());
  const int64_t swapped = plain_distance(a.subspan(1), b.subspan(1)) + (a[0] == b[0] ? 0 : 1);
  return std::min({swapped, plain_distance(a.subspan(1), b) + 1, plain_distance(a, b.subspan(1)) + 1});
}

}  // namespace

TEST_CASE("edit distance: counts the fewest edits") {
  CHECK(edit_distance(units("Saturday"), units("Sunday")) == 3);
  CHECK(edit_distance(units("flaw"), units("lawn")) == 2);
  CHECK(edit_distance(units(""), units("abc")) == 3);
  CHECK(edit_distance(units("abc"), units("")) == 3);
  CHECK(edit_distance(units(""), units("")) == 0);
}

TEST_CASE("edit distance: agrees with its definition") {
  uint32_t state = 7;
  const auto draw = [&](uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % below;
  };
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<int64_t> a(draw(6));
    std::vector<int64_t> b(draw(6));
    for (int64_t& unit : a) unit = draw(3);
    for (int64_t& unit : b) unit = draw(3);
    CHECK(edit_distance(a, b) == plain_distance(a, b));
    CHECK(edit_distance(a, b) == edit_distance(b, a));
  }
}

TEST_CASE("edit distance: error rates are those of jiwer") {
  int compared = 0;
  for (const goldens::Scores& golden : goldens::scores) {
    INFO(golden.name);
    if (golden.wer >= 0) {
      ++compared;
      CHECK(word_error_rate(golden.outputs, golden.references).rate() ==
            Approx(golden.wer).epsilon(1e-12).margin(1e-12));
    }
    if (golden.cer >= 0) {
      CHECK(character_error_rate(golden.outputs, golden.references).rate() ==
            Approx(golden.cer).epsilon(1e-12).margin(1e-12));
    }
  }
  CHECK(compared > 8);
}

TEST_CASE("edit distance: characters are code points, and edges hold") {
  const std::vector<std::string> outputs = {"perche"};
  const std::vector<std::string> references = {"perché"};
  CHECK(character_error_rate(outputs, references).edits == 1);
  CHECK(character_error_rate(outputs, references).reference_length == 6);
  CHECK(word_error_rate(outputs, references).rate() == 1);
  const std::vector<std::string> empty = {""};
  CHECK(word_error_rate(empty, empty).rate() == 0);
  CHECK(word_error_rate(outputs, empty).rate() == 1);
  CHECK(word_error_rate(empty, references).rate() == 1);
  CHECK(fault_of([&] { word_error_rate({}, references); }) == Fault::usage);
}
