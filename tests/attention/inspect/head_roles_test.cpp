// Roles, measures and distances of heads that are made by hand: what each of them does is known.
#include "heed/attention/inspect/head_roles.h"

#include <cmath>

#include "heed/attention/inspect/corpus_head_measures.h"
#include "heed/attention/inspect/head_distances.h"
#include "heed/core/error.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

using Weight = double (*)(int64_t query, int64_t key, int64_t keys);

const std::vector<std::string> sentence_tokens{"[SOS]", "the", "old", "wolf", "sees", "the", ".", "[EOS]"};

/// A map of a sentence with a head for each function.
MapView sentence_map(const std::vector<Weight>& heads, const std::string& kind = "encoder self") {
  MapView map{.name = "encoder.blocks.0.attention", .kind = kind};
  map.heads = static_cast<int64_t>(heads.size());
  map.queries = map.keys = static_cast<int64_t>(sentence_tokens.size());
  map.query_tokens = map.key_tokens = sentence_tokens;
  for (const Weight weight : heads)
    for (int64_t query = 0; query < map.queries; ++query)
      for (int64_t key = 0; key < map.keys; ++key)
        map.weights.push_back(static_cast<float>(weight(query, key, map.keys)));
  return map;
}

double copies(int64_t query, int64_t key, int64_t) { return query == key ? 1 : 0; }
double looks_back(int64_t query, int64_t key, int64_t) {
  return key == std::max<int64_t>(query - 1, 0) ? 1 : 0;
}
double uniform_weight(int64_t, int64_t, int64_t keys) { return 1.0 / static_cast<double>(keys); }
double on_wolf(int64_t, int64_t key, int64_t) { return key == 3 ? 0.7 : 0.3 / 7; }
double on_end(int64_t, int64_t key, int64_t keys) { return key == keys - 1 ? 1 : 0; }

const TokenCounts counts{{"the", 900}, {"old", 50}, {"wolf", 2}, {"sees", 40}, {".", 1000}};

std::vector<std::string> names(const std::vector<HeadRole>& roles) {
  std::vector<std::string> out;
  for (const HeadRole& role : roles) out.push_back(role.name);
  return out;
}

double measure(const HeadSums& sums, const std::string& name) {
  for (const auto& [known, value] : measures_of(sums))
    if (known == name) return value;
  FAIL("there is no measure " << name);
  return 0;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("head roles: heads that copy, look back, are uniform, seek rare words or the end are labelled so") {
  const MapView map = sentence_map({copies, looks_back, uniform_weight, on_wolf, on_end});
  const auto roles = [&](int64_t head) { return names(roles_of(sums_of(map, head, counts))); };
  CHECK(roles(0) == Names{"positional 0"});
  CHECK(roles(2) == Names{"uniform"});
  CHECK(roles(3) == Names{"rare words", "vertical"});
  CHECK(roles(4) == Names{"special tokens", "vertical"});
  HeadSums back = sums_of(map, 1, counts);
  CHECK(favourite_offset(back).second == Approx(7.0 / 8));  // the first query cannot look back
  CHECK(names(roles_of(back)).empty());                     // below 90 %
  back.add(back);
  back.rows = 15;  // as of longer sentences
  CHECK(names(roles_of(back)) == Names{"positional -1"});
}

TEST_CASE(
    "head roles: an alignment head is better than one offset by ten points, limits of repetition hold") {
  const HeadSums sums = sums_of(sentence_map({uniform_weight}), 0, counts);
  const auto with = [&](const RoleEvidence& evidence) { return names(roles_of(sums, evidence)); };
  CHECK(with({.alignment = AlignmentAgreement{.hits = 61, .links = 100, .baseline = 0.5}}) ==
        Names{"alignment", "uniform"});
  CHECK(with({.alignment = AlignmentAgreement{.hits = 59, .links = 100, .baseline = 0.5}}) ==
        Names{"uniform"});
  CHECK(with({.repeats = RepeatScores{.induction = 0.5, .previous = 0.1}}) == Names{"induction", "uniform"});
  CHECK(with({.repeats = RepeatScores{.induction = 0.39, .previous = 0.4}}) ==
        Names{"previous token", "uniform"});
}

TEST_CASE("head roles: words that are equally rare, and few tokens, give no role") {
  const auto roles = [](const MapView& map, const TokenCounts& known) {
    return names(roles_of(sums_of(map, 0, known)));
  };
  const MapView map = sentence_map(
      {[](int64_t query, int64_t key, int64_t) { return key == 1 + query % 5 ? 0.7 : 0.3 / 7; }});
  const HeadSums tied = sums_of(map, 0, {});  // no word is known, so that none is the rarest
  CHECK(tied.rare_rows == 0);
  CHECK(names(roles_of(tied)).empty());
  for (const auto& [name, value] : measures_of(tied)) CHECK(name != "rarest_word_rows");
  CHECK(roles(map, {{"the", 2}, {"old", 1}, {"wolf", 1}, {"sees", 1}, {".", 1}}).empty());
  CHECK(roles(sentence_map({on_wolf}), {{"the", 2}, {"old", 2}, {".", 3}, {"sees", 3}, {"wolf", 1}}) ==
        Names{"rare words", "vertical"});
  // Two tokens: one column has at least half of the weight, one offset all of it in the first row.
  MapView few{.name = "encoder.blocks.0.attention", .kind = "encoder self"};
  few.heads = 1;
  few.queries = few.keys = 2;
  few.query_tokens = few.key_tokens = {"a", "[EOS]"};
  few.weights = {1, 0, 0.1F, 0.9F};
  CHECK(roles(few, {}).empty());
  HeadSums many = sums_of(few, 0, {});
  for (int i = 0; i < 3; ++i) many.add(many);
  REQUIRE(many.rows == 16);
  CHECK(names(roles_of(many)) ==
        Names{"positional 0"});  // 55 % in the first column, where equal weights put 75 %
}

TEST_CASE("head measures: masses on positions and tokens, by hand") {
  const MapView map = sentence_map({copies, uniform_weight, on_end});
  const HeadSums copy = sums_of(map, 0, counts), even = sums_of(map, 1, counts),
                 end = sums_of(map, 2, counts);
  CHECK(measure(copy, "self") == Approx(1));
  CHECK(measure(copy, "entropy") == Approx(0).margin(1e-12));
  CHECK(measure(copy, "confidence") == Approx(7.0 / 8));  // the end of the sentence does not count
  CHECK(measure(copy, "special") == Approx(2.0 / 8));
  CHECK(measure(copy, "band_0") == Approx(1));
  CHECK(measure(copy, "same_word") == Approx(0).margin(1e-12));
  CHECK(measure(even, "entropy") == Approx(std::log(8)));
  CHECK(measure(even, "uniform_entropy") == Approx(std::log(8)));
  CHECK(measure(even, "punctuation") == Approx(1.0 / 8));
  CHECK(measure(even, "same_word") == Approx(2.0 / 8 / 8));  // each "the" to the other one
  CHECK(measure(even, "previous") == Approx(1.0 / 8));
  CHECK(measure(even, "first") == Approx(1.0 / 8));
  CHECK(measure(even, "band_1") == Approx((6 * 3 + 2 * 2) / 64.0));
  CHECK(measure(even, "band_10") == Approx(1));
  CHECK(measure(even, "distance") == Approx(168 / 64.0));  // 2 (7 1 + 6 2 + 5 3 + 4 4 + 3 5 + 2 6 + 1 7)
  CHECK(measure(end, "column") == Approx(1));
  CHECK(measure(end, "end_from_end") == Approx(1));
  CHECK(measure(end, "end_from_rest") == Approx(1));
  CHECK(end.column_tokens.at("[EOS]") == 1);
  HeadSums both = copy;
  both.add(end);
  CHECK(measure(both, "special") == Approx((0.25 + 1) / 2));
  CHECK(both.examples == 2);
}

TEST_CASE("head measures: a causal map's reference and rarest word are those of the keys that a query sees") {
  const MapView map = sentence_map({[](int64_t query, int64_t key, int64_t) {
    return key <= query ? 1.0 / static_cast<double>(query + 1) : 0.0;
  }});
  const HeadSums sums = sums_of(map, 0, counts);
  CHECK(sums.entropy == Approx(sums.uniform_entropy));
  CHECK(sums.rare_rows == 6);  // the first query sees [SOS] alone, the second "the" besides
}

TEST_CASE("head measures: special tokens and punctuation") {
  for (const char* token : {"[SOS]", "</s>", "<|endoftext|>"}) CHECK(is_special_token(token));
  for (const char* token : {"[", "a", "<", "[]", "'s"}) CHECK(!is_special_token(token));
  for (const char* token : {".", "...", "\u2581,", "«", "?!"}) CHECK(is_punctuation_token(token));
  for (const char* token : {"a.", "", "[SOS]", "è", "3", "\u2581"}) CHECK(!is_punctuation_token(token));
}

TEST_CASE("head measures: induction and previous-token scores on a sequence that repeats itself") {
  MapView map = sentence_map({looks_back, [](int64_t query, int64_t key, int64_t) {
                                return key == (query >= 4 ? query - 3 : 0) ? 1.0 : 0.0;
                              }});
  CHECK(repeat_scores(map, 0, 4).previous == Approx(1));
  CHECK(repeat_scores(map, 0, 4).induction == Approx(0).margin(1e-12));
  CHECK(repeat_scores(map, 1, 4).induction == Approx(1));
  CHECK_THROWS_AS(repeat_scores(map, 0, 8), Error);
}

TEST_CASE("effective rank: of equal rows 1, of a permutation its size, of two equal singular values 2") {
  CHECK(effective_rank(std::vector<float>(12, 0.25F), 3, 4) == Approx(1));
  CHECK(effective_rank(std::vector<float>{0, 1, 0, 0, 0, 1, 1, 0, 0}, 3, 3) == Approx(3));
  CHECK(effective_rank(std::vector<float>{1, 0, 0, 0, 1, 0}, 2, 3) == Approx(2));
  CHECK(effective_rank(std::vector<float>(4, 0), 2, 2) == 0);
  // Singular values 3 and 1 of [[2, 1], [1, 2]]: e^-(3/4 log 3/4 + 1/4 log 1/4).
  CHECK(effective_rank(std::vector<float>{2, 1, 1, 2}, 2, 2) ==
        Approx(std::exp(-(0.75 * std::log(0.75) + 0.25 * std::log(0.25)))));
  CHECK_THROWS_AS(effective_rank(std::vector<float>(3), 2, 2), Error);
}

TEST_CASE("head distances: equal heads 0, heads without a common key log 2, similar ones are side by side") {
  HeadDistances distances;
  const auto almost = [](int64_t query, int64_t key, int64_t keys) {
    return 0.9 * copies(query, key, keys) + 0.1 / static_cast<double>(keys);
  };
  distances.add({sentence_map({copies, on_end, almost}), sentence_map({on_end, copies})});
  const auto groups = distances.groups();
  REQUIRE(groups.size() == 1);
  const HeadDistances::Group& group = groups[0];
  REQUIRE(group.heads.size() == 5);
  const auto between = [&](size_t a, size_t b) { return group.distances[a * 5 + b]; };
  CHECK(between(1, 3) == Approx(0).margin(1e-12));
  CHECK(between(0, 4) == Approx(0).margin(1e-12));
  CHECK(between(0, 1) == Approx(std::log(2) * 7 / 8));  // the last query looks at the end in both
  CHECK(between(0, 2) < 0.1);
  CHECK(between(2, 0) == between(0, 2));
  // 0 and 4 merge first, then 1 and 3 or 2: heads 1 and 3 stay neighbours, and 0, 4, 2 as well.
  std::vector<size_t> place(5);
  for (size_t i = 0; i < 5; ++i) place[group.order[i]] = i;
  CHECK(std::abs(static_cast<int>(place[1]) - static_cast<int>(place[3])) == 1);
  CHECK(std::abs(static_cast<int>(place[0]) - static_cast<int>(place[4])) == 1);
  CHECK_THROWS_AS(distances.add({sentence_map({copies})}), Error);
}
