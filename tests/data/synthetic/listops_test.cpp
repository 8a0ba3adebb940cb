// ListOps: values, grammar, baselines, and the benchmark's files.
#include "heed/data/synthetic/listops.h"

#include <algorithm>
#include <set>

#include "heed/core/io/files.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/tests/data/scratch.h"

using namespace heed;

namespace {

constexpr ListOpsGrammar small{.depth = 3, .arguments = 6, .operators = 0.5, .shortest = 8, .longest = 48};

/// The tokens of "[MAX 2 9 ]", read as a file would be.
std::string tokens(const Scratch& scratch, const std::string& expression, int64_t value) {
  return std::string(
      read_listops(scratch.file("x.tsv", expression + "\t" + std::to_string(value) + "\n")).at(0));
}

double of(const std::vector<Baseline>& baselines, const std::string& name) {
  for (const Baseline& one : baselines) {
    if (one.name == name) return one.accuracy;
  }
  FAIL("no anchor is called " << name);
  return 0;
}

/// Depth of nesting, the most arguments, and whether all operators have two.
struct Shape {
  int64_t depth = 0, maximum = 0, fewest = 1000;
};

Shape shape(std::string_view all) {
  Shape out;
  std::vector<int64_t> open;
  for (const char token : all) {
    const auto id = static_cast<uint8_t>(token);
    if (id == listops_close) {
      out.maximum = std::max(out.maximum, open.back());
      out.fewest = std::min(out.fewest, open.back());
      open.pop_back();
      continue;
    }
    if (!open.empty()) ++open.back();
    if (id <= listops_sum) open.push_back(0);
    out.depth = std::max(out.depth, static_cast<int64_t>(open.size()));
  }
  return out;
}

}  // namespace

TEST_CASE("listops: operators have the benchmark's values") {
  const Scratch scratch;
  const auto value = [&](const std::string& expression, int64_t expected) {
    CAPTURE(expression);
    CHECK(listops_value(tokens(scratch, expression, expected)) == expected);
  };
  value("[MAX 2 9 [MIN 4 7 ] 0 ]", 9);
  value("[MED 1 2 ]", 1);  // 1.5 without its half
  value("[MED 9 1 2 ]", 2);
  value("[MED 8 1 4 5 ]", 4);
  value("[MED 7 7 7 7 ]", 7);
  value("[SM 9 9 9 ]", 7);
  value("[SM 5 5 ]", 0);
  value("[MIN 3 [SM 9 9 ] 7 ]", 3);
  value("[SM [MED 0 9 ] [MAX [MIN 2 3 ] 1 ] ]", 6);
  value("4", 4);
}

TEST_CASE("listops: deeper levels are guessed by their operator") {
  const Scratch scratch;
  const std::string all = tokens(scratch, "[SM 1 [MAX 2 [MIN 5 6 ] ] [MED 1 1 ] ]", 7);
  CHECK(listops_value(all) == 7);  // 1 + 5 + 1
  CHECK(listops_value(all, 1) == (1 + 9 + 4) % 10);
  CHECK(listops_value(all, 2) == 1 + 2 + 1);  // the inner MIN as 0
  CHECK(listops_value(all, 3) == 7);
}

TEST_CASE("listops: sequences follow the grammar, differ, and have their values") {
  const Sequences all = listops(2000, 3, small);
  REQUIRE(all.count() == 2000);
  std::set<std::string> distinct;
  Shape whole;
  for (int64_t i = 0; i < all.count(); ++i) {
    const std::string_view one = all.at(i);
    distinct.emplace(one);
    CHECK(one.size() > 8);
    CHECK(one.size() < 48);
    CHECK(listops_value(one) == all.labels[static_cast<size_t>(i)]);
    const Shape found = shape(one);
    whole.depth = std::max(whole.depth, found.depth);
    whole.maximum = std::max(whole.maximum, found.maximum);
    whole.fewest = std::min(whole.fewest, found.fewest);
  }
  CHECK(distinct.size() == 2000);
  CHECK(whole.depth == 2);
  CHECK(whole.maximum == 6);
  CHECK(whole.fewest == 2);
}

TEST_CASE("listops: the same for any number of threads, others for another seed") {
  const int before = threads();
  set_threads(1);
  const std::string one = listops(3000, 7, small).sha256();
  set_threads(3);
  const std::string three = listops(3000, 7, small).sha256();
  set_threads(before);
  CHECK(one == three);
  CHECK(listops(3000, 8, small).sha256() != one);
  // The first ones do not depend on how many follow.
  CHECK(listops(3000, 7, small).slice(0, 100).sha256() == listops(100, 7, small).sha256());
}

TEST_CASE("listops: baselines score what was published and measured", "[slow]") {
  const Sequences all = listops(20000, 1);
  int64_t full = 0;
  std::vector<size_t> lengths;
  for (int64_t i = 0; i < all.count(); ++i) {
    lengths.push_back(all.at(i).size());
    if (i % 10 == 0) full += shape(all.at(i)).depth == 9 ? 1 : 0;
  }
  CHECK(full >= 1990);  // nearly every one of 2,000 accepted trees uses the whole depth
  std::sort(lengths.begin(), lengths.end());
  CHECK(std::abs(static_cast<double>(all.bytes.size()) / 20000 - 1035) < 12);
  CHECK(std::abs(static_cast<double>(lengths[2000]) - 575) < 12);
  CHECK(std::abs(static_cast<double>(lengths[10000]) - 951) < 20);
  CHECK(std::abs(static_cast<double>(lengths[18000]) - 1648) < 20);
  const std::vector<Baseline> baselines = listops_baselines(all.slice(0, 10000), all.slice(10000, 20000));
  // Three deviations of a share p measured on 10,000: 1.5 points at most.
  CHECK(of(baselines, "majority") == Approx(0.171).margin(0.011));
  CHECK(of(baselines, "root operator") == Approx(0.358).margin(0.0145));
  CHECK(of(baselines, "root operator and its digits") == Approx(0.493).margin(0.015));
  CHECK(of(baselines, "1 level") == Approx(0.600).margin(0.015));
  CHECK(of(baselines, "2 levels") == Approx(0.737).margin(0.0135));
  CHECK(of(baselines, "3 levels") == Approx(0.836).margin(0.0115));
  CHECK(of(baselines, "4 levels") == Approx(0.898).margin(0.0095));
  CHECK(of(baselines, "5 levels") == Approx(0.936).margin(0.0075));
  CHECK(of(baselines, "6 levels") == Approx(0.960).margin(0.006));
}

TEST_CASE("listops: the tiny grammar has the baselines of its gate") {
  const Sequences all = listops(20000, 1, small);
  const std::vector<Baseline> baselines = listops_baselines(all.slice(0, 10000), all.slice(10000, 20000), 3);
  CHECK(of(baselines, "majority") == Approx(0.13).margin(0.012));
  CHECK(of(baselines, "root operator") == Approx(0.274).margin(0.0145));
  CHECK(of(baselines, "root operator and its digits") == Approx(0.37).margin(0.015));
  CHECK(of(baselines, "1 level") == Approx(0.451).margin(0.015));
  CHECK(of(baselines, "2 levels") == 1);
}

TEST_CASE("listops: the benchmark's files are written and read") {
  const Scratch scratch;
  const Sequences all = listops(60, 5, small);
  write_listops(scratch.path(), {all.slice(0, 40), all.slice(40, 50), all.slice(50, 60)});
  CHECK(read_listops(scratch.path() / "basic_train.tsv").sha256() == all.slice(0, 40).sha256());
  CHECK(read_listops(scratch.path() / "basic_test.tsv").sha256() == all.slice(50, 60).sha256());
  const std::string file = io::read(scratch.path() / "basic_val.tsv");
  CHECK_THAT(file, Catch::Matchers::StartsWith("Source\tTarget\r\n( "));
  // The file writes a binary tree: an operator and its first argument are a pair, that and the second, and so
  // on.
  CHECK(listops_line(tokens(scratch, "[MAX 2 9 [MIN 4 7 ] 0 ]", 9), 9) ==
        "( ( ( ( ( [MAX 2 ) 9 ) ( ( ( [MIN 4 ) 7 ) ] ) ) 0 ) ] )\t9");
  CHECK(listops_text(tokens(scratch, "( ( ( [SM 5 ) 5 ) X )", 0)) == "[SM 5 5 ]");
}

TEST_CASE("listops: files that are none are refused with the line") {
  const Scratch scratch;
  const auto refused = [&](const std::string& bytes) {
    return refusal(Fault::data, [&] { read_listops(scratch.file("l.tsv", bytes)); });
  };
  CHECK_THAT(refused("[MAX 1 2 ]\t2\n[MAX 1 2 ]\t1\n"),
             containing("l.tsv:2: the expression is 2, but the label says 1"));
  CHECK_THAT(refused("[MAX 1 2\t2\n"), containing("does not end"));
  CHECK_THAT(refused("[MAX ]\t2\n"), containing("has no arguments"));
  CHECK_THAT(refused("[MAX 1 2 ] 3\t2\n"), containing("token 5"));
  CHECK_THAT(refused("[MEDIAN 1 2 ]\t2\n"), containing("'[MEDIAN' is none of"));
  CHECK_THAT(refused("[MAX 1 2 ]\n"), containing("l.tsv:1"));
  CHECK_THAT(refused("Source\tTarget\n"), containing("no expression"));
  const std::string deep = [] {
    std::string out;
    for (int i = 0; i < 100000; ++i) out += "[MAX 1 ";
    return out;
  }();
  CHECK_THAT(refused(deep + "\t1\n"), containing("does not end"));
}

TEST_CASE("listops: grammars without an end or without enough expressions are refused") {
  CHECK_THROWS_WITH(listops(10, 1, {.depth = 1}), containing("depth = 1"));
  CHECK_THROWS_WITH(listops(10, 1, {.arguments = 1}), containing("arguments = 1"));
  CHECK_THROWS_WITH(listops(10, 1, {.operators = 1}), containing("operators = 1"));
  CHECK_THROWS_WITH(listops(0, 1), containing("= 0"));
  CHECK_THROWS_WITH(listops(10, 1, {.shortest = 50, .longest = 51}), containing("more than 50"));
  // Depth 2 and two arguments: 400 expressions of 4 tokens.
  CHECK_THROWS_WITH(
      listops(500, 1, {.depth = 2, .arguments = 2, .operators = 0.5, .shortest = 2, .longest = 9}),
      containing("gave no more than 400"));
}

TEST_CASE("listops: who listens hears how many there are, may end it, and gets the same expressions") {
  std::vector<int64_t> heard;
  const Sequences told = listops(3000, 1, small, [&](int64_t done) { heard.push_back(done); });
  CHECK(told.sha256() == listops(3000, 1, small).sha256());
  REQUIRE(heard.size() > 1);
  CHECK(std::is_sorted(heard.begin(), heard.end()));
  CHECK(heard.back() == 3000);
  CHECK_THROWS_AS(listops(3000, 1, small, [](int64_t) { throw 1; }), int);
}
