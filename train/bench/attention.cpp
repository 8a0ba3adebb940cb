// heed bench attention: one attention layer against length.
#include "attention/variant.h"
#include "autograd/ops.h"
#include "core/count.h"
#include "train/bench/bench.h"
#include "train/bench/measure.h"

namespace heed::bench {
namespace {

constexpr int64_t width = 128, heads = 4;

void one(const std::string& spec, int64_t longest, Table& table) {
  for (const bool causal : {false, true}) {
    if (causal && !variant_named(parse_spec(spec).name).traits.causal) continue;
    for (int64_t length = 64; length <= longest; length *= 2) {
      Rng rng(1);
      const auto attention = make_attention(spec, {.width = width, .heads = heads, .causal = causal}, rng);
      const Tensor values(Shape{1, length, width});
      fill_normal(values, 0, 1, rng);
      const Tensor x = leaf(values);
      const Mask mask = causal ? Mask::causal() : Mask::none();
      const auto forward = [&] { return attention->forward({x, x, mask, nullptr, {}}); };
      const double ahead = median_time([&] {
        const NoTape no_tape;
        forward();
      });
      const auto step = [&] { backward(sum(square(forward()))); };
      step();
      reset_peak();
      const int64_t before = memory_use().live;
      Count::reset();
      step();
      const auto flops = static_cast<double>(Count::flops().load());
      const double both = median_time(step);
      const auto peak = static_cast<double>(memory_use().peak - before);
      table.row(with_machine_facts(Json::object({{"attention", spec},
                                                 {"causal", causal},
                                                 {"length", length},
                                                 {"forward_ms", 1e3 * ahead},
                                                 {"step_ms", 1e3 * both},
                                                 {"tokens_per_s", static_cast<double>(length) / both},
                                                 {"gflops", 1e-9 * flops / both},
                                                 {"peak_mib", peak / 1048576}})));
    }
  }
}

}  // namespace

void bench_attention(const Invocation& call) {
  const int64_t longest = call.integer("longest", 2048);
  if (longest < 64 || longest > (int64_t{1} << 24))
    fail("--longest = ", longest, ". It must be 64 to 16777216.");
  std::vector<std::string> specs(call.words.begin() + 1, call.words.end());
  if (specs.empty()) {
    for (const Variant& variant : variants()) specs.emplace_back(variant.traits.name);
  }
  for (const std::string& spec : specs) full_spec(spec);  // a wrong name ends here
  Table table({{"attention", "attention"},
               {"causal", "causal"},
               {"length", "length", 0},
               {"forward ms", "forward_ms", 3},
               {"step ms", "step_ms", 3},
               {"tokens/s", "tokens_per_s", 0},
               {"GFLOP/s", "gflops", 0},
               {"peak MiB", "peak_mib"}},
              call.has("json"));
  for (const std::string& spec : specs) one(spec, longest, table);
}

}  // namespace heed::bench
