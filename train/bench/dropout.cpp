// heed bench dropout: a step with dropout beside one without.
#include <array>
#include <ctime>

#include "heed/attention/variant.h"
#include "heed/train/bench/attention_layer.h"
#include "heed/train/bench/bench.h"
#include "heed/train/bench/measure.h"
#include "heed/train/progress/progress.h"

namespace heed::bench {
namespace {

constexpr std::array fastmax_dropouts{"fastmax:p=2,dropout=quadratic", "fastmax:p=2,dropout=standard",
                                      "fastmax:p=2,dropout=1d"};
constexpr int64_t min_tokens = 4096;  ///< minimum number of tokens of a step: short sequences come in batches
constexpr size_t min_rounds = 5;

/// Medians over steps without dropout and steps with it; `without` and `with` are seconds.
struct StepTimes {
  double without = 0, with = 0;
  double ratio = 0;      ///< the median of the ratios of neighbouring steps
  double cpu_ratio = 0;  ///< median ratio of their processor times, which other programs disturb less
};

/// Seconds that all threads of this process have computed.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Times steps with and without dropout in turns, so that other programs disturb both alike.
StepTimes measure_both(const AttentionLayer::Options& options, double dropout, double budget) {
  AttentionLayer::Options dropout_options = options;
  dropout_options.dropout = dropout;
  AttentionLayer plain_layer(options), dropout_layer(dropout_options);
  plain_layer.step();
  dropout_layer.step();
  std::vector<double> without, with, ratios, cpu_ratios;
  const double began = seconds_now();
  while (without.size() < min_rounds || seconds_now() - began < budget) {
    const double start = cpu_seconds();
    without.push_back(timed([&] { plain_layer.step(); }));
    const double middle = cpu_seconds();
    with.push_back(timed([&] { dropout_layer.step(); }));
    ratios.push_back(with.back() / without.back());
    cpu_ratios.push_back((cpu_seconds() - middle) / (middle - start));
  }
  return {.without = median(without),
          .with = median(with),
          .ratio = median(ratios),
          .cpu_ratio = median(cpu_ratios)};
}

/// The options of a call.
struct DropoutPlan {
  std::vector<int64_t> widths;
  int64_t shortest, longest;
  double dropout, seconds;
};

DropoutPlan dropout_plan(const ParsedArguments& arguments) {
  DropoutPlan plan{.widths = {32, 64},
                   .shortest = integer_option(arguments, "from", 64, 16, int64_t{1} << 24),
                   .longest = integer_option(arguments, "longest", 16384, 16, int64_t{1} << 24),
                   .dropout = arguments.number("rate", 0.1),
                   .seconds = seconds_option(arguments, 1)};
  if (arguments.has("head-dim")) plan.widths = {integer_option(arguments, "head-dim", 32, 1, 1024)};
  if (!(plan.dropout > 0 && plan.dropout < 1))
    fail("--rate = ", plan.dropout, ". It must be above 0 and below 1.");
  return plan;
}

/// Times an attention and adds a row to the table; skips one that does not support the mask.
void add_row(const std::string& spec, bool causal, int64_t width, int64_t length, const DropoutPlan& plan,
             Table& table) {
  const Traits& traits = variant_named(parse_spec(spec).name).traits;
  if (causal ? !traits.causal : !traits.bidirectional) return;
  const ContextSwitches interruptions;
  const StepTimes pair = measure_both({.spec = spec,
                                       .causal = causal,
                                       .width = width,
                                       .length = length,
                                       .batch = std::max<int64_t>(1, min_tokens / length),
                                       .training = true},
                                      plan.dropout, plan.seconds);
  table.row(with_machine_metadata(Json::object({{"attention", spec},
                                                {"causal", causal},
                                                {"width", width},
                                                {"length", length},
                                                {"without_ms", 1e3 * pair.without},
                                                {"with_ms", 1e3 * pair.with},
                                                {"ratio", pair.ratio},
                                                {"cpu_ratio", pair.cpu_ratio},
                                                {"interruptions_per_s", interruptions.per_second()}})));
}

}  // namespace

void bench_dropout(const ParsedArguments& arguments) {
  const DropoutPlan plan = dropout_plan(arguments);
  const bool all = arguments.positional.size() < 2;
  const std::vector<std::string> specs =
      spec_arguments(arguments, {fastmax_dropouts.begin(), fastmax_dropouts.end()});
  Table table({{"attention", "attention"},
               {"causal", "causal"},
               {"d", "width", 0},
               {"length", "length", 0},
               {"without, ms", "without_ms", 3},
               {"with, ms", "with_ms", 3},
               {"ratio", "ratio"},
               {"ratio of CPU time", "cpu_ratio"}},
              arguments.has("json"));
  for (const std::string& spec : specs) {
    for (const bool causal : {false, true}) {
      for (const int64_t width : plan.widths) {
        for (int64_t length = plan.shortest; length <= plan.longest; length *= 2)
          add_row(spec, causal, width, length, plan, table);
      }
    }
  }
  if (!all) return;
  for (const Variant& variant : variants()) {
    for (const bool causal : {false, true})
      add_row(variant.traits.name, causal, plan.widths[0], std::min<int64_t>(512, plan.longest), plan, table);
  }
}

}  // namespace heed::bench
