// Tests core/block_plan.h: a plan holds every pair of its pattern once and describes its groups
// correctly.
#include "heed/core/block_plan.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>

#include "heed/tests/catch.h"

namespace heed {
namespace {

using kernel::BlockPlan;
using kernel::Pattern;
using Allowed = std::function<bool(int64_t h, int64_t i, int64_t j)>;

Pattern pattern_of(int64_t heads, int64_t queries, int64_t keys, const Allowed& allowed) {
  Pattern p{.heads = heads, .queries = queries, .keys = keys, .first = {0}, .runs = {}};
  for (int64_t row = 0; row < heads * queries; ++row) {
    for (int32_t j = 0; j < keys; ++j) {
      if (!allowed(row / queries, row % queries, j)) continue;
      if (static_cast<int64_t>(p.runs.size()) > p.first.back() && p.runs.back().end == j) {
        ++p.runs.back().end;
      } else {
        p.runs.push_back({j, j + 1});
      }
    }
    p.first.push_back(static_cast<int64_t>(p.runs.size()));
  }
  return p;
}

struct Named {
  const char* name;
  Allowed allowed;
};
const std::vector<Named> patterns = {
    {"everything", [](int64_t, int64_t, int64_t) { return true; }},
    {"nothing", [](int64_t, int64_t, int64_t) { return false; }},
    {"window", [](int64_t, int64_t i, int64_t j) { return std::abs(i - j) <= 20; }},
    {"dilated",
     [](int64_t h, int64_t i, int64_t j) { return std::abs(i - j) <= 90 && (i - j) % (2 + h) == 0; }},
    {"strided", [](int64_t, int64_t i, int64_t j) { return j <= i && (i - j < 16 || (i - j) % 16 == 0); }},
    {"columns", [](int64_t, int64_t i, int64_t j) { return j <= i && (i - j) % 7 == 0; }},
    {"summaries", [](int64_t, int64_t i, int64_t j) { return j <= i && (i / 32 == j / 32 || j % 32 > 29); }},
    {"scattered", [](int64_t h, int64_t i, int64_t j) { return (i * 31 + j * 17 + h) % 13 == 0; }},
    {"one far key", [](int64_t, int64_t i, int64_t j) { return j == i * 29 % 97; }},
};

/// Every pair of a pattern once in its plan, and what the plan says of its groups is so.
void check_plan(const Pattern& pattern, const BlockPlan& plan, const Allowed& allowed) {
  const int64_t heads = pattern.heads, queries = pattern.queries, keys = pattern.keys;
  CHECK(plan.kept() == pattern.kept());
  for (int64_t h = 0; h < heads; ++h) {
    std::vector<int> met(static_cast<size_t>(queries * keys)), asked(static_cast<size_t>(queries));
    const auto meet = [&](int64_t i, int64_t j) { ++met[static_cast<size_t>(i * keys + j)]; };
    bool sound = true;
    for (int64_t p = 0; p < plan.passes(); ++p) {
      const BlockPlan::Pass pass = plan.pass(h, p);
      CHECK(pass.end - pass.begin <= plan.max_groups());
      for (int64_t g = pass.begin; g < pass.end; ++g) {
        const BlockPlan::Group& group = plan.group(g);
        const int32_t* rows = plan.queries(group);
        int64_t kept = 0;
        for (int64_t n = 0; n < group.count; ++n) {
          if (p == 0) ++asked[static_cast<size_t>(rows[n])];
          if (group.gap > 0) sound = sound && rows[n] == rows[0] + n * group.gap;
          if (!group.alone) continue;
          each_run(pattern, group.part, h, rows[n], keys, [&](int64_t begin, int64_t end) {
            for (int64_t j = begin; j < end; ++j) meet(rows[n], j);
            sound = sound && group.begin <= begin && end <= group.end;
            kept += end - begin;
          });
        }
        for (int64_t s = group.first_step; s < group.last_step; ++s) {
          const BlockPlan::Step& step = plan.step(s);
          const int32_t* index = plan.keys(step);
          for (int64_t k = 0; k < step.count; ++k) {
            sound = sound && (k == 0 || index[k] > index[k - 1]) &&
                    (step.gap == 0 || index[k] == index[0] + k * step.gap) && index[k] >= group.begin &&
                    index[k] < group.end;
            for (int64_t n = 0; n < group.count; ++n) {
              const bool meets = step.pairs < 0 || (plan.pairs(step)[n] >> k & 1) != 0;
              if (!meets) continue;
              meet(rows[n], index[k]);
              sound = sound && k >= step.begin[n / BlockPlan::lanes] && k < step.end[n / BlockPlan::lanes];
              ++kept;
            }
          }
        }
        CHECK(kept == group.kept);
      }
    }
    CHECK(sound);
    CHECK(std::all_of(asked.begin(), asked.end(), [](int times) { return times == 1; }));
    bool same = true;
    for (int64_t i = 0; i < queries; ++i) {
      for (int64_t j = 0; j < keys; ++j)
        same = same && met[static_cast<size_t>(i * keys + j)] == (allowed(h, i, j) ? 1 : 0);
    }
    CHECK(same);
  }
}

}  // namespace

TEST_CASE("pattern: a plan holds every pair once") {
  for (const Named& named : patterns) {
    for (const auto& [queries, keys] :
         {std::pair<int64_t, int64_t>{1, 40}, {3, 3}, {17, 17}, {150, 101}, {300, 300}}) {
      for (const int64_t heads : {1, 2}) {
        INFO(named.name << ", " << heads << " heads, " << queries << " queries, " << keys << " keys");
        const Pattern pattern = pattern_of(heads, queries, keys, named.allowed);
        CHECK(&pattern.plan() == &pattern.plan());
        check_plan(pattern, pattern.plan(), named.allowed);
        const BlockPlan whole(pattern, kernel::device_costs);
        check_plan(pattern, whole, named.allowed);
        for (const BlockPlan::Group& group : whole.group_list()) CHECK_FALSE(group.alone);
        const Pattern turned = pattern.transposed();
        CHECK((turned.queries == keys && turned.keys == queries));
        check_plan(turned, BlockPlan(turned, kernel::device_costs),
                   [&](int64_t h, int64_t j, int64_t i) { return named.allowed(h, i, j); });
      }
    }
  }
}

TEST_CASE("pattern: queries on one lattice share groups, so that hardly a pair is done in vain") {
  const auto done = [](const Allowed& allowed) {
    const Pattern pattern = pattern_of(1, 1024, 1024, allowed);
    const BlockPlan& plan = pattern.plan();
    int64_t pairs = 0;
    for (int64_t p = 0; p < plan.passes(); ++p) {
      for (int64_t g = plan.pass(0, p).begin; g < plan.pass(0, p).end; ++g) {
        const BlockPlan::Group& group = plan.group(g);
        if (group.alone) pairs += 7 * group.kept;
        for (int64_t s = group.first_step; s < group.last_step; ++s) {
          const BlockPlan::Step& step = plan.step(s);
          for (int64_t q = 0; q < group.count; ++q)
            pairs += step.end[q / BlockPlan::lanes] - step.begin[q / BlockPlan::lanes];
        }
      }
    }
    return static_cast<double>(pairs) / static_cast<double>(pattern.kept());
  };
  CHECK(done([](int64_t, int64_t i, int64_t j) { return std::abs(i - j) <= 64; }) < 1.2);
  CHECK(done([](int64_t, int64_t i, int64_t j) { return (i - j) % 8 == 0; }) < 1.01);
  CHECK(done([](int64_t, int64_t i, int64_t j) { return std::abs(i - j) <= 256 && (i - j) % 4 == 0; }) < 1.2);
  CHECK(done([](int64_t, int64_t i, int64_t j) { return j <= i && (i - j < 32 || (i - j) % 32 == 0); }) <
        1.5);
}

}  // namespace heed
