// Pattern attention on a device over three passes: a later pass joins what all the earlier ones found. A
// planner makes two at most, so the plans are put together here.
#include "heed/core/constant_table.h"
#include "heed/core/kernels/attention/pattern_attention_device.h"
#include "heed/tests/catch.h"
#include "heed/tests/core/kernels/attention/run_attention.h"

using namespace heed;

namespace {

using kernel::BlockPlan;
using kernel::Pattern;

constexpr int64_t queries = 70, keys = 101;

/// Queries see keys [begin, end), but for every seventh query from `blind` on, which sees none.
Pattern part(int32_t begin, int32_t end, int64_t blind) {
  Pattern made{.heads = 1, .queries = queries, .keys = keys, .first = {0}, .runs = {}};
  for (int64_t i = 0; i < queries; ++i) {
    if (i % 7 != blind) made.runs.push_back({begin, end});
    made.first.push_back(static_cast<int64_t>(made.runs.size()));
  }
  return made;
}

const std::vector<Pattern> parts = {part(0, 30, 0), part(30, 75, 1), part(75, 101, 2)};

/// The pairs of all parts.
Pattern whole() {
  Pattern made{.heads = 1, .queries = queries, .keys = keys, .first = {0}, .runs = {}};
  for (size_t i = 0; i < size_t{queries}; ++i) {
    for (const Pattern& one : parts)
      made.runs.insert(made.runs.end(), one.runs.begin() + one.first[i], one.runs.begin() + one.first[i + 1]);
    made.first.push_back(static_cast<int64_t>(made.runs.size()));
  }
  return made;
}

template <class X>
const X* on_device(const std::vector<X>& list, kernel::PlanOnDevice& plan) {
  if (list.empty()) return nullptr;
  plan.lists.push_back(constant_bytes(list, Device::cuda));
  return static_cast<const X*>(plan.lists.back().raw());
}

/// A plan whose pass p is the plan of pattern p.
kernel::PlanView joined(const std::vector<Pattern>& patterns, kernel::PlanOnDevice& to) {
  std::vector<BlockPlan::Pass> passes;
  std::vector<BlockPlan::Group> groups;
  std::vector<BlockPlan::Step> steps;
  std::vector<int32_t> rows, columns;
  std::vector<uint64_t> pairs;
  int64_t maximum = 0;
  const auto append = [](auto& list, const auto& more) { list.insert(list.end(), more.begin(), more.end()); };
  for (const Pattern& pattern : patterns) {
    const BlockPlan plan(pattern, kernel::device_costs);
    REQUIRE(plan.passes() == 1);
    const auto first_group = static_cast<int64_t>(groups.size()),
               first_step = static_cast<int64_t>(steps.size());
    for (BlockPlan::Group group : plan.group_list()) {
      group.queries += static_cast<int64_t>(rows.size());
      group.first_step += first_step;
      group.last_step += first_step;
      groups.push_back(group);
    }
    for (BlockPlan::Step step : plan.step_list()) {
      step.keys += static_cast<int64_t>(columns.size());
      if (step.pairs >= 0) step.pairs += static_cast<int64_t>(pairs.size());
      steps.push_back(step);
    }
    append(rows, plan.query_list());
    append(columns, plan.key_list());
    append(pairs, plan.pair_list());
    passes.push_back({first_group, static_cast<int64_t>(groups.size())});
    maximum = std::max(maximum, plan.max_groups());
  }
  return {.pass_list = on_device(passes, to),
          .groups = on_device(groups, to),
          .steps = on_device(steps, to),
          .queries = on_device(rows, to),
          .keys = on_device(columns, to),
          .pairs = on_device(pairs, to),
          .heads = 1,
          .passes = static_cast<int64_t>(patterns.size()),
          .max_groups = maximum};
}

void compare(const test::HeadInputs& x, Rounding rounding, double near) {
  const auto pattern = std::make_shared<const Pattern>(whole());
  const kernel::PatternParams params{.scale = 0.4, .pattern = pattern, .rounding = rounding};
  const auto run = [&] {
    return test::run_attention<kernel::PatternAttention, kernel::PatternAttentionBack>(x, params);
  };
  const test::HeadOutputs want = run();
  const auto plan = std::make_shared<kernel::PlanOnDevice>();
  std::vector<Pattern> turned;
  for (const Pattern& one : parts) turned.push_back(one.transposed());
  plan->straight = joined(parts, *plan);
  plan->transposed = joined(turned, *plan);
  pattern->on_device = plan;
  device_here() = Device::cuda;
  const test::HeadOutputs y = run();
  device_here() = Device::cpu;
  CHECK(test::distance(y.out, want.out.to_doubles()) < near);
  CHECK(test::distance(y.lse, want.lse.to_doubles()) < near);
  CHECK(test::distance(y.dq, want.dq.to_doubles()) < near);
  CHECK(test::distance(y.dk, want.dk.to_doubles()) < near);
  CHECK(test::distance(y.dv, want.dv.to_doubles()) < near);
}

}  // namespace

TEST_CASE("pattern: a device joins the sums of three passes") {
  compare(test::HeadInputs({2, 2, queries, keys, 40, 150}, DType::f64), Rounding::none, 1e-13);
  compare(test::HeadInputs({2, 2, queries, keys, 40, 150}, DType::f32), Rounding::none, 2e-5);
}

TEST_CASE("pattern: the tensor cores join the sums of three passes") {
  const test::HeadInputs x({2, 2, queries, keys, 16, 24}, DType::f32);
  compare(x, Rounding::bf16, 0.02);
  compare(x, Rounding::tf32, 0.003);
}
