// heed bench kernels: one training step, kernel by kernel, measured here or predicted for a GPU.
#include <algorithm>
#include <map>

#include "heed/autograd/autocast.h"
#include "heed/core/cuda/runtime/context.h"
#include "heed/core/io/files.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/table_text.h"
#include "heed/core/kernel_log.h"
#include "heed/train/bench/bench.h"
#include "heed/train/bench/measure.h"
#include "heed/train/bench/predicted_time.h"
#include "heed/train/bench/stepper.h"

namespace heed::bench {
namespace {

/// What all calls of one kernel do in a step; times in seconds.
struct KernelSum {
  std::string kernel;
  int64_t calls = 0, launches = 0, bytes = 0, flops = 0;
  double seconds = 0;         ///< median over the steps, or predicted
  double memory_seconds = 0;  ///< time of its bytes at the card's rate
  double work_seconds = 0;    ///< time of its operations at the card's rate
  double launch_seconds = 0;  ///< time of its launches on the card

  void add(const KernelSum& other) {
    calls += other.calls;
    launches += other.launches;
    bytes += other.bytes;
    flops += other.flops;
    seconds += other.seconds;
    memory_seconds += other.memory_seconds;
    work_seconds += other.work_seconds;
    launch_seconds += other.launch_seconds;
  }
  /// What the predicted time is mostly made of.
  const char* bound() const {
    if (launch_seconds > std::max(memory_seconds, work_seconds)) return "launches";
    return memory_seconds > work_seconds ? "bytes" : "operations";
  }
};

KernelSum predicted(const KernelCall& call, const Card& card) {
  return {.kernel = call.kernel,
          .calls = 1,
          .launches = call.launches,
          .bytes = call.bytes,
          .flops = call.flops,
          .seconds = predicted_seconds(call, card),
          .memory_seconds = static_cast<double>(call.bytes) / card.bytes_per_second,
          .work_seconds = static_cast<double>(call.flops) / card.flops(call.rounding),
          .launch_seconds = static_cast<double>(call.launches) * card.seconds_per_launch};
}

/// The sums of a step by kernel, the longest first: predicted, or with `steps_logged` of several equal steps
/// the counts of the last and the median times.
std::vector<KernelSum> sums_of(const std::vector<std::vector<KernelCall>>& steps_logged, const Card& card,
                               bool is_predicted) {
  std::map<std::string, KernelSum> sums;
  for (const KernelCall& call : steps_logged.back()) sums[call.kernel].add(predicted(call, card));
  std::map<std::string, std::vector<double>> times;
  for (const std::vector<KernelCall>& calls : steps_logged) {
    std::map<std::string, double> in_step;
    for (const KernelCall& call : calls) in_step[call.kernel] += call.seconds;
    for (const auto& [kernel, seconds] : in_step) times[kernel].push_back(seconds);
  }
  std::vector<KernelSum> out;
  for (auto& [kernel, sum] : sums) {
    sum.kernel = kernel;
    if (!is_predicted) sum.seconds = median(times[kernel]);
    out.push_back(sum);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const KernelSum& a, const KernelSum& b) { return a.seconds > b.seconds; });
  KernelSum total{.kernel = "all kernels"};
  for (const KernelSum& sum : out) total.add(sum);
  out.push_back(total);
  return out;
}

/// A step by kernel, and what it is measured beside.
struct Breakdown {
  std::vector<KernelSum> kernels = {};  ///< the last one is the sum of all
  bool is_predicted = false;
  double step = 0;  ///< seconds of a step as trained; of all kernels where the times are predicted
  double interruptions = 0;
  std::string batch = {};  ///< shape of the batch
};

Breakdown break_down(Workload& work, int64_t rounds, const Card& card, bool is_predicted) {
  work.batch = [batch = work.batch](int64_t) { return batch(0); };  // all steps are alike
  Stepper step(work);
  Breakdown out{.is_predicted = is_predicted};
  out.batch = to_string(work.batch(0).tensors.at(0).shape());
  const auto logged = [&] {
    const KernelLog log;
    step.run_eagerly(0);
    return log.calls();
  };
  step.run_eagerly(0);
  std::vector<std::vector<KernelCall>> steps;
  if (is_predicted) {
    steps.push_back(logged());
    out.kernels = sums_of(steps, card, is_predicted);
    out.step = out.kernels.back().seconds;
    return out;
  }
  for (int64_t i = 0; i < Stepper::warm_up(); ++i) step();
  std::vector<double> times;
  const ContextSwitches interruptions;
  for (int64_t i = 0; i < rounds; ++i) {  // in turn, so that what disturbs the machine disturbs both
    steps.push_back(logged());
    times.push_back(timed([&] { step(); }));
  }
  out.interruptions = interruptions.per_second();
  out.kernels = sums_of(steps, card, is_predicted);
  out.step = median(times);
  return out;
}

void print_json(const std::string& name, const Breakdown& step, const Card& card) {
  for (const KernelSum& sum : step.kernels) {
    const bool is_total = &sum == &step.kernels.back();
    Json row = Json::object({{"row", name},
                             {"kernel", sum.kernel},
                             {"total", is_total},
                             {"calls", sum.calls},
                             {"launches", sum.launches},
                             {"bytes", sum.bytes},
                             {"flops", sum.flops},
                             {step.is_predicted ? "predicted_ms" : "ms", 1e3 * sum.seconds},
                             {"share", 100 * sum.seconds / step.step}});
    if (step.is_predicted) {
      row.set("card", card.name);
      row.set("bound", sum.bound());
    } else {
      row.set("gb_per_s", 1e-9 * static_cast<double>(sum.bytes) / sum.seconds);
      row.set("gflops", 1e-9 * static_cast<double>(sum.flops) / sum.seconds);
    }
    if (is_total && !step.is_predicted) {
      row.set("step_ms", 1e3 * step.step);
      row.set("between_ms", 1e3 * (step.step - sum.seconds));
      row.set("interruptions_per_s", step.interruptions);
    }
    io::print_data(with_machine_metadata(std::move(row)).dump() + "\n");
  }
}

void print_words(const std::string& words) { io::print(folded(words, output_columns())); }

void print_table(const std::string& name, const Breakdown& step, const Card& card) {
  print_machine(with_machine_metadata(Json::object({})));
  print_words(text("A step of ", name, " on a batch of shape ", step.batch, "."));
  if (step.is_predicted) {
    print_words(text("Predicted for ", card.name, ", not measured: of each call the longer of its bytes at ",
                     formatted("%.0f", 1e-9 * card.bytes_per_second), " GB/s and its operations at ",
                     formatted("%.0f", 1e-12 * card.exact_flops), " TFLOP/s (in tf32 ",
                     formatted("%.0f", 1e-12 * card.tf32_flops), ", in bf16 ",
                     formatted("%.0f", 1e-12 * card.bf16_flops), "), and ",
                     formatted("%.1f", 1e6 * card.seconds_per_launch), " us for each launch. The rates are ",
                     card.source, "."));
    if (default_device == Device::cpu)
      print_words("On the CPU a kernel counts as one launch, and arrays are of f32 that a GPU has in bf16.");
  }
  std::vector<TableRow> rows;
  if (step.is_predicted)
    rows.push_back({"kernel", "launches", "MB", "GFLOP", "pred. ms", "%", "bound by"});
  else
    rows.push_back({"kernel", "launches", "MB", "GFLOP", "ms", "%", "GB/s", "GFLOP/s"});
  for (const KernelSum& sum : step.kernels) {
    const auto bytes = static_cast<double>(sum.bytes), flops = static_cast<double>(sum.flops);
    rows.push_back({sum.kernel, text(sum.launches), formatted("%.1f", 1e-6 * bytes),
                    formatted("%.2f", 1e-9 * flops), formatted("%.3f", 1e3 * sum.seconds),
                    formatted("%.1f", 100 * sum.seconds / step.step)});
    if (step.is_predicted) {
      rows.back().emplace_back(sum.bound());
    } else {
      rows.back().push_back(formatted("%.1f", 1e-9 * bytes / sum.seconds));
      rows.back().push_back(formatted("%.1f", 1e-9 * flops / sum.seconds));
    }
  }
  io::print("\n" + aligned_table(rows, {.alignment = step.is_predicted ? "lrrrrrl" : "lrrrrrrr"}) + "\n");
  if (step.is_predicted) return;
  const double between = step.step - step.kernels.back().seconds;
  const std::string step_words = text("A step as trained takes ", formatted("%.3f", 1e3 * step.step), " ms");
  if (between >= 0)
    print_words(text(step_words, ", of which ", formatted("%.3f", 1e3 * between),
                     " ms are the host's work between its kernels."));
  else
    print_words(text(step_words,
                     ", less than its kernels one by one: what lies between them is too short "
                     "to be seen."));
  if (default_device != Device::cpu)
    print_words("Each kernel was timed alone, from an idle device to an idle device; the step was not.");
  if (step.interruptions > max_interruptions)
    print_words("Other programs were at work on this machine. Measure again.");
}

}  // namespace

void bench_kernels(const ParsedArguments& arguments) {
  const std::string name = arguments.positional.size() > 1 ? arguments.positional[1] : "baby";
  check_name(name, "kernels");
  const int64_t rounds = integer_option(arguments, "rounds", 5, 1, 100000);
  const Card& card = predicted_card(arguments);
  const bool is_emulated = default_device != Device::cpu && cuda::emulated;
  Workload work = workload(name, arguments);
  const Autocast rounding(rounding_of(work.config->train.precision));
  const Breakdown step = break_down(work, rounds, card, is_emulated || arguments.has("predict-on"));
  if (arguments.has("json"))
    print_json(name, step, card);
  else
    print_table(name, step, card);
}

}  // namespace heed::bench
