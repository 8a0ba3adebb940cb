// heed bench attention: attentions by sequence length, relative to tiled softmax.
#include <cmath>
#include <cstdio>
#include <map>

#include "heed/attention/spec.h"
#include "heed/attention/variant.h"
#include "heed/autograd/autocast.h"
#include "heed/core/io/files.h"
#include "heed/core/operation_count.h"
#include "heed/nn/set_option.h"
#include "heed/train/bench/attention_layer.h"
#include "heed/train/bench/bench.h"
#include "heed/train/bench/machine_peaks.h"
#include "heed/train/bench/measure.h"
#include "heed/train/report/chart.h"

namespace heed::bench {
namespace {

/// An attention to time.
struct Subject {
  std::string spec;
  bool causal;
  int64_t width;  // width of a head
};

/// Cost of an attention at one length. With --forward there is no step: its numbers are 0.
struct Cost {
  double forward = 0, step = 0;              // seconds of a forward pass, and of forward and backward
  double flops = 0;                          // FLOPs of a step; with --forward of a forward pass
  double pairs = 0;                          // number of query-key pairs; 0: not counted
  double forward_bytes = 0, step_bytes = 0;  // peak memory without the inputs
  double longest() const { return std::max(forward, step); }
};

/// Measures an attention at one length.
Cost measure(const Subject& subject, int64_t length, bool forward_alone) {
  AttentionLayer layer(
      {.spec = subject.spec, .causal = subject.causal, .width = subject.width, .length = length});
  const auto forward = [&] {
    const NoGrad no_grad;
    layer.forward();
  };
  const auto peak_of = [](const std::function<void()>& run) {
    const int64_t before = memory_use().live;
    reset_peak();
    run();
    return static_cast<double>(memory_use().peak - before);
  };
  Cost cost;
  forward();  // computes what is cached, such as the tiles of a pattern
  PairCount::reset();
  Count::reset();
  cost.forward_bytes = peak_of(forward);
  cost.pairs = static_cast<double>(PairCount::total().load());
  cost.flops = static_cast<double>(Count::flops().load());
  cost.forward = median_time(forward, 0.15, 3);
  if (forward_alone) return cost;
  layer.step();  // computes what backward caches
  Count::reset();
  cost.step_bytes = peak_of([&] { layer.step(); });
  cost.flops = static_cast<double>(Count::flops().load());
  cost.step = median_time([&] { layer.step(); }, 0.3, 3);
  return cost;
}

/// Costs of one subject by length, for lengths whose steps (or forward passes) stay below `seconds`.
using Curve = std::map<int64_t, Cost>;

/// The length from which a curve stays below another in a quantity, interpolated in logarithms; 0: never.
double crossover(const Curve& curve, const Curve& other, double Cost::*quantity) {
  double from = 0;  // the shortest length so far from which the curve stays below
  const auto log_ratio = [&](int64_t length) {
    return std::log(curve.at(length).*quantity / (other.at(length).*quantity));
  };
  for (auto cost = curve.rbegin(); cost != curve.rend(); ++cost) {
    const int64_t length = cost->first;
    if (!other.contains(length)) continue;
    const double gap = log_ratio(length);
    if (gap >= 0) {
      if (from == 0) return 0;
      const int64_t next = std::next(curve.find(length))->first;
      const double fraction = gap / (gap - log_ratio(next));
      return std::exp(std::log(static_cast<double>(length)) +
                      fraction * std::log(static_cast<double>(next) / static_cast<double>(length)));
    }
    from = static_cast<double>(length);
  }
  return from;
}

/// The options of a call.
struct Plan {
  int64_t width, shortest, longest;
  double seconds;  // maximum expected seconds of a step
  bool forward_alone = false;
  Rounding rounding = Rounding::none;
  double peak_rate = 0;  ///< FLOP/s of a large matrix product
};

/// Measures an attention at doubling lengths until the next one would take too long, and adds rows and lines
/// to the outputs. `softmax` is the curve of the reference; null: this is it.
Curve measure_curve(const Subject& subject, const Plan& plan, const Curve* softmax, Table& table,
                    std::string& csv, std::string& notes) {
  Curve curve;
  double expected = 0;  // seconds at the next length
  for (int64_t length = std::min(plan.shortest, plan.longest); length <= plan.longest; length *= 2) {
    if (expected > plan.seconds) break;
    const ContextSwitches interruptions;
    Cost cost;
    try {
      cost = measure(subject, length, plan.forward_alone);
    } catch (const Error& error) {
      if (curve.empty()) throw;  // the attention does not support this use
      notes += text("  ", subject.spec, ": no longer than ", length / 2, ". ", error.what(), "\n");
      break;
    }
    curve[length] = cost;
    // Predicts the next length's time from the growth so far, at least doubling.
    const auto before = curve.find(length / 2);
    expected = cost.longest() *
               std::max(2.0, before == curve.end() ? 4.0 : cost.longest() / before->second.longest());
    const Cost* beside = softmax != nullptr && softmax->contains(length) ? &softmax->at(length) : nullptr;
    Json row = Json::object({{"attention", subject.spec},
                             {"causal", subject.causal},
                             {"width", subject.width},
                             {"length", length},
                             {"forward_ms", 1e3 * cost.forward},
                             {"tokens_per_s", static_cast<double>(length) / cost.longest()},
                             {"products_ms", 1e3 * cost.flops / plan.peak_rate},
                             {"ratio", cost.longest() * plan.peak_rate / cost.flops},
                             {"gflops", 1e-9 * cost.flops / cost.longest()},
                             {"of_limit", 100 * cost.flops / cost.longest() / plan.peak_rate},
                             {"forward_mib", cost.forward_bytes / 1048576},
                             {"interruptions_per_s", interruptions.per_second()}});
    if (!plan.forward_alone) {
      row.set("step_ms", 1e3 * cost.step);
      row.set("peak_mib", cost.step_bytes / 1048576);
    }
    if (beside != nullptr) {
      row.set("softmax_forward", beside->forward / cost.forward);
      if (!plan.forward_alone) row.set("softmax_step", beside->step / cost.step);
      if (cost.pairs > 0) {
        const double kept = cost.pairs / beside->pairs;
        row.set("kept", 100 * kept);
        row.set("of_share", cost.longest() / (beside->longest() * kept));
      }
    }
    csv += text("\"", subject.spec, "\",", subject.causal ? 1 : 0, ",", subject.width, ",", length, ",",
                1e3 * cost.forward, ",", plan.forward_alone ? "" : text(1e3 * cost.step), ",",
                cost.forward_bytes / 1048576, ",", plan.forward_alone ? "" : text(cost.step_bytes / 1048576),
                "\n");
    table.row(with_machine_metadata(std::move(row)));
  }
  return curve;
}

/// Charts of at most eight lines each, always including softmax: time or memory over length, both
/// logarithmic.
void draw(const Path& out, const std::vector<std::pair<std::string, Curve>>& curves, bool causal,
          int64_t width, bool forward_alone) {
  struct Picture {
    const char *file, *title;
    double Cost::*what;
    double unit;
  };
  for (const Picture& picture :
       {Picture{"forward", "forward, ms", &Cost::forward, 1e3},
        {"step", "forward and backward, ms", &Cost::step, 1e3},
        {"memory", "peak memory of a step, MiB", &Cost::step_bytes, 1.0 / 1048576}}) {
    if (forward_alone && picture.what != &Cost::forward) continue;
    std::vector<Series> lines;
    for (const auto& [spec, curve] : curves) {
      Series line{spec};
      for (const auto& [length, cost] : curve) {
        line.x.push_back(static_cast<double>(length));
        line.y.push_back(cost.*picture.what * picture.unit);
      }
      lines.push_back(std::move(line));
    }
    const size_t pictures = lines.size() <= 8 ? 1 : (lines.size() - 1 + 6) / 7;
    for (size_t i = 0; i < pictures; ++i) {
      Chart chart{.title = text(picture.title, ", head width ", width, causal ? ", causal" : ", full"),
                  .x_label = "length",
                  .logarithmic_x = true};
      for (size_t j = 0; j < lines.size(); ++j) {
        if (j == 0 || pictures == 1 || (j - 1) / 7 == i) chart.series.push_back(lines[j]);
      }
      const std::string number = pictures == 1 ? "" : "-" + std::to_string(i + 1);
      io::write(out / text(picture.file, "-d", width, causal ? "-causal" : "-full", number, ".svg"),
                chart_svg(chart, true));
    }
  }
}

std::string length_text(double length) {
  return length == 0 ? "never" : text("from ", static_cast<int64_t>(std::lround(length)));
}

Plan plan_of(const ParsedArguments& arguments) {
  Plan plan{.width = integer_option(arguments, "head-dim", 32, 1, 1024),
            .shortest = integer_option(arguments, "from", 256, 16, int64_t{1} << 24),
            .longest = integer_option(arguments, "longest", 4096, 64, int64_t{1} << 24),
            .seconds = seconds_option(arguments, 2),
            .forward_alone = arguments.has("forward")};
  TrainOptions train;
  if (arguments.has("precision")) set_option(train, "precision", arguments.get("precision"), "--precision: ");
  plan.rounding = rounding_of(train.precision);
  plan.peak_rate = product_rate(plan.rounding);
  return plan;
}

std::vector<std::string> all_attentions() {
  std::vector<std::string> names;
  for (const Variant& variant : variants()) names.emplace_back(variant.traits.name);
  return names;
}

/// Products: the time of the FLOPs, of a step or of forward alone, at the rate of a large product.
std::vector<Column> columns_of(const Plan& plan) {
  std::vector<Column> columns{{"attention", "attention"},
                              {"causal", "causal"},
                              {"d", "width", 0},
                              {"length", "length", 0},
                              {"forward ms", "forward_ms", 3},
                              {"x softmax", "softmax_forward"}};
  if (!plan.forward_alone) {
    columns.push_back({"step ms", "step_ms", 3});
    columns.push_back({"x softmax", "softmax_step"});
  }
  columns.insert(columns.end(), {{"tokens/s", "tokens_per_s", 0},
                                 {"products ms", "products_ms", 3},
                                 {"ratio", "ratio"},
                                 {"kept %", "kept"},
                                 {"of its share", "of_share"},
                                 {"forward MiB", "forward_mib"}});
  if (!plan.forward_alone) columns.push_back({"step MiB", "peak_mib"});
  return columns;
}

}  // namespace

void bench_attention(const ParsedArguments& arguments) {
  const Plan plan = plan_of(arguments);
  const Autocast rounding(plan.rounding);
  const std::vector<std::string> specs = after_softmax(spec_arguments(arguments, all_attentions()));
  const Path out = arguments.get("out");
  if (!out.empty()) io::make_directories(out);
  std::string csv = "attention,causal,head_dim,length,forward_ms,step_ms,forward_mib,step_mib\n", crossings,
              crossings_csv = "attention,causal,head_dim,forward_from,step_from\n", notes;
  Table table(columns_of(plan), arguments.has("json"));
  const int64_t width = plan.width;
  for (const bool causal : {false, true}) {
    std::vector<std::pair<std::string, Curve>> curves;
    for (const std::string& spec : specs) {
      const Traits& traits = variant_named(parse_spec(spec).name).traits;
      if (causal ? !traits.causal : !traits.bidirectional) continue;
      const Curve* softmax = curves.empty() ? nullptr : &curves[0].second;
      Curve curve = measure_curve({spec, causal, width}, plan, softmax, table, csv, notes);
      if (softmax != nullptr) {
        const double forward_from = crossover(curve, *softmax, &Cost::forward);
        std::string number, words;  // crossover of a step, as a number and in words
        if (!plan.forward_alone) {
          const double step_from = crossover(curve, *softmax, &Cost::step);
          number = text(step_from);
          words = ", forward and backward " + length_text(step_from);
        }
        crossings_csv +=
            text("\"", spec, "\",", causal ? 1 : 0, ",", width, ",", forward_from, ",", number, "\n");
        crossings +=
            text("  ", spec, causal ? ", causal" : "", ": forward ", length_text(forward_from), words, "\n");
      }
      curves.emplace_back(spec, std::move(curve));
    }
    if (!out.empty()) draw(out, curves, causal, width, plan.forward_alone);
  }
  if (!out.empty()) {
    io::write(out / "attention.csv", csv);
    io::write(out / "crossovers.csv", crossings_csv);
  }
  if (!arguments.has("json") && !notes.empty()) io::printf("\nNot longer\n%s", notes.c_str());
  if (!arguments.has("json") && !crossings.empty())
    io::printf("\nFaster than tiled softmax\n%s", crossings.c_str());
}

}  // namespace heed::bench
