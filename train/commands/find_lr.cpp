// heed train --find-lr: the curve of loss over learning rate, and what it suggests.
#include "heed/train/commands/find_lr.h"

#include <unistd.h>

#include <cmath>

#include "heed/core/io/files.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/terminal.h"
#include "heed/train/loop/learning_rate_finder.h"
#include "heed/train/loop/machine_memory.h"
#include "heed/train/progress/progress.h"
#include "heed/train/report/chart.h"

namespace heed {
namespace {

std::string rounded(double value) { return formatted("%.2g", value); }

std::string table(const LearningRateCurve& curve) {
  std::string out = "step,learning_rate,loss,smoothed_loss\n";
  for (size_t i = 0; i < curve.rates.size(); ++i) {
    out += text(i + 1, ",", exact_number(curve.rates[i]), ",", exact_number(curve.losses[i]), ",",
                i < curve.smoothed.size() ? exact_number(curve.smoothed[i]) : "", "\n");
  }
  return out;
}

/// The largest loss of the curve's picture: a loss that diverges would leave the rest of it a flat line.
double highest_shown(const LearningRateCurve& curve) {
  double first = 0;
  for (size_t i = 0; i <= curve.lowest; ++i) first = std::max(first, curve.smoothed[i]);
  return first + std::max(0.5 * (first - curve.smoothed[curve.lowest]), 1e-3 * std::abs(first));
}

/// Values above a bound are left out.
std::vector<double> up_to(double bound, std::vector<double> values) {
  for (double& value : values) {
    if (value > bound) value = NAN;
  }
  return values;
}

Chart chart_of(const LearningRateCurve& curve, bool with_losses) {
  Chart chart{.title = "Loss over learning rate", .series = {}, .x_label = "learning rate"};
  chart.logarithmic_x = true;
  if (curve.steepest) chart.mark = *curve.suggestion();
  std::vector<double> rates(curve.rates.begin(),
                            curve.rates.begin() + static_cast<int64_t>(curve.smoothed.size()));
  const double bound = highest_shown(curve);
  if (with_losses) chart.series.push_back({"loss", curve.rates, up_to(bound, curve.losses)});
  chart.series.push_back({"smoothed", std::move(rates), up_to(bound, curve.smoothed)});
  return chart;
}

void suggest(const Config& config, const LearningRateCurve& curve) {
  if (curve.smoothed.empty()) {
    fail(Fault::numeric, "find-lr: the loss is not finite at the first rate, ", curve.rates.front(),
         ". Look for the reason with --detect-anomaly true, without --find-lr.");
  }
  const std::string end = curve.diverged ? text("it diverged at ", rounded(curve.rates.back()))
                                         : text("it did not diverge up to ", rounded(curve.rates.back()));
  io::printf("\nlowest loss %s at rate %s; %s\n", rounded(curve.smoothed[curve.lowest]).c_str(),
             rounded(curve.rates[curve.lowest]).c_str(), end.c_str());
  if (!curve.steepest) {
    io::print(
        "no suggestion: the loss never fell. Give a wider range with --find-lr-from and --find-lr-to, or "
        "more --find-lr-steps.\n");
    return;
  }
  const double rate = *curve.suggestion();
  io::printf(
      "suggestion  --lr %s: at rate %s the smoothed loss falls fastest, and training is still stable\n",
      rounded(learning_rate_for_peak(config, rate)).c_str(), rounded(rate).c_str());
  if (config.train.schedule.kind == ScheduleKind::noam)
    io::print("            (with schedule = noam, train.learning_rate is a factor: its peak is that rate)\n");
}

}  // namespace

int find_lr(Config& config, const ParsedArguments& arguments) {
  LearningRateRange range;
  range.from = arguments.number("find-lr-from", range.from);
  range.to = arguments.number("find-lr-to", range.to);
  range.steps = arguments.integer("find-lr-steps", range.steps);
  apply_machine(arguments);
  cap_to_free_memory({.device_given = arguments.has("memory")});
  Progress progress;
  progress.quiet = arguments.has("quiet");
  config.task->load(config, {}, [](const std::string&) {});
  const double began = seconds_now();
  const LearningRateCurve curve =
      find_learning_rate(config, range, [&](int64_t step, double rate, double loss) {
        const double took = seconds_now() - began;
        progress.step(
            {.step = step,
             .total = range.steps,
             .loss = loss,
             .rate = rate,
             .seconds_left = took / static_cast<double>(step) * static_cast<double>(range.steps - step)});
      });
  progress.finish();
  const Path out = arguments.get("out", ".");
  io::make_directories(out);
  io::write(out / "find_lr.csv", table(curve));
  if (!curve.smoothed.empty()) {
    io::write(out / "find_lr.svg", chart_svg(chart_of(curve, true)));
    io::print(
        chart_text(chart_of(curve, false), std::min<int64_t>(terminal_columns(STDOUT_FILENO, 80), 100), 14));
  }
  suggest(config, curve);
  io::printf("curve       %s, %s\n", (out / "find_lr.svg").c_str(), (out / "find_lr.csv").c_str());
  return 0;
}

std::vector<CommandOption> find_lr_options() {
  return {{"find-lr", "",
           "train nothing: test a range of learning rates on a few steps, show the loss over the rate and "
           "suggest "
           "one; writes find_lr.csv and find_lr.svg into --out (default: the present folder)"},
          {"find-lr-from", "RATE", "with --find-lr: rate of the first step (default: 1e-7)"},
          {"find-lr-to", "RATE", "with --find-lr: rate of the last step (default: 1)"},
          {"find-lr-steps", "N", "with --find-lr: number of steps (default: 100)"}};
}

}  // namespace heed
