// heed bench train: time and memory of training steps, and the time of their products alone.
#include <algorithm>
#include <cstdio>

#include "heed/autograd/autocast.h"
#include "heed/core/cuda/module/module.h"
#include "heed/core/cuda/runtime/context.h"
#include "heed/core/io/files.h"
#include "heed/core/memory/storage.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/train/bench/bench.h"
#include "heed/train/bench/machine_peaks.h"
#include "heed/train/bench/matmul_replay.h"
#include "heed/train/bench/measure.h"
#include "heed/train/bench/stepper.h"
#include "heed/train/progress/progress.h"

namespace heed::bench {
namespace {

constexpr double mebibyte = 1 << 20;

/// Cost of training a workload; times in seconds, sizes in bytes.
struct Times {
  double step = 0;           ///< mean over the period of each step's median
  double products = 0;       ///< time of the matrix products of a step, alone
  double product_flops = 0;  ///< FLOPs of the matrix products of a step
  double tokens = 0;         ///< mean number of tokens of a step
  int64_t timed = 0;         ///< number of timed steps
  int64_t mapped = 0;        ///< memory taken from the system after the warmup
  int64_t tensors = 0;       ///< peak memory of tensors
  int64_t resident = 0;      ///< peak memory of the process
  double interruptions = 0;  ///< context switches per second
  double flops = 0;          ///< FLOPs of a step, all ops included
  double launches = 0;       ///< kernel launches of a step
  std::string why_not_replayed = {};
};

int64_t launches() {
  if constexpr (built_with_cuda) return cuda::is_open() ? cuda::launches() : 0;
  return 0;
}

/// Times of alternating measurements: steps by their position in the period, and their products alone.
struct Turns {
  std::vector<std::vector<double>> steps;
  std::vector<double> products;
};

/// Shows how far a row is on standard error, once it has taken two seconds.
class RowProgress {
 public:
  explicit RowProgress(std::string row) : row_(std::move(row)) {}
  ~RowProgress() { progress_.erase(); }
  RowProgress(const RowProgress&) = delete;
  RowProgress& operator=(const RowProgress&) = delete;
  /// Counts `steps`, which were just taken, towards those that expect() named.
  void add(double steps = 1) {
    done_ += steps;
    const double seconds = seconds_now() - began_, share = all_ > 0 ? std::min(done_ / all_, 1.0) : -1;
    if (seconds < 2) return;
    progress_.work({.label = row_,
                    .share = share,
                    .seconds_left = share > 0 ? seconds * (1 / share - 1) : -1,
                    .began = began_});
  }
  /// Expects so many steps more; until then their number is unknown.
  void expect(double steps) { all_ = done_ + steps; }
  /// Mean seconds of a step until now.
  double step_seconds() const { return (seconds_now() - began_) / done_; }

 private:
  std::string row_;
  Progress progress_;
  double began_ = seconds_now(), done_ = 0, all_ = 0;
};

/// The least number of timed steps without --rounds: those of a period, and seven where seven steps take less
/// than twenty seconds, else three.
int64_t least_timed(int64_t period, double step_seconds) {
  return std::max<int64_t>(step_seconds * 7 < 20 ? 7 : 3, period);
}

/// Runs the steps of a period op by op and lists their products. Where they take longer than twenty seconds,
/// those that ran are the period of `work` from then on.
std::vector<Product> products_of(Workload& work, Stepper& step, RowProgress& progress) {
  const ProductLog log;
  double seconds = 0;
  for (int64_t i = 0; i < work.period; ++i) {
    seconds += timed([&] { step.run_eagerly(i); });
    progress.add();
    if (seconds > 20) work.period = i + 1;
  }
  return log.list();
}

/// Alternates steps and their products, so that a machine that changes its clock affects both.
Times time_steps(Workload& work, int64_t rounds, RowProgress& progress) {
  Times out;
  Stepper step(work);
  Count::reset();
  const std::vector<Product> products = products_of(work, step, progress);
  // The memory of equal shapes is constant after two steps; of varying lengths, after one period. The warm-up
  // takes whole periods, so the first timed step has batch 0 again.
  const int64_t period = work.period, warm = default_device == Device::cpu ? std::max<int64_t>(2, period)
                                                                           : Stepper::warm_up() * period;
  constexpr double budget = 4, turn = 0.5;
  const int64_t least = rounds > 0 ? rounds : least_timed(period, progress.step_seconds());
  // The products of a step take up to its time, and each turn replays those of a period at least once.
  const double seconds = progress.step_seconds(),
               timed_steps = rounds > 0 ? static_cast<double>(rounds)
                                        : std::max(static_cast<double>(least), budget / seconds),
               num_turns = std::max(1.0, timed_steps * std::min(1.0, seconds / turn)),
               replayed = std::max(static_cast<double>(period), turn / 2 / seconds);
  progress.expect(static_cast<double>(2 * warm) + timed_steps + num_turns * replayed);
  out.flops = static_cast<double>(Count::flops().load()) / static_cast<double>(period);
  const auto warm_up = [&] {
    for (int64_t i = 0; i < warm; ++i, progress.add()) step();
  };
  warm_up();
  for (const Product& product : products) out.product_flops += static_cast<double>(product.flops());
  out.product_flops /= static_cast<double>(period);
  const MemoryUse before = memory_use();
  const int64_t started = launches();
  warm_up();
  out.launches = static_cast<double>(launches() - started) / static_cast<double>(warm);
  if (default_device != Device::cpu) out.why_not_replayed = step.why_not_replayed();
  const MemoryUse after = memory_use();
  out.mapped = after.mapped == before.mapped ? 0 : std::max<int64_t>(after.reserved - before.reserved, 1);
  out.tensors = after.peak;
  out.resident = resident_peak();
  const ProductReplay replay(products);
  replay.once();
  Turns turns{std::vector<std::vector<double>>(static_cast<size_t>(period)), {}};
  const ContextSwitches interruptions;
  double spent = 0;
  while (out.timed < least || (rounds == 0 && spent < budget)) {
    for (double taken = 0; taken < turn && (rounds == 0 || out.timed < rounds); ++out.timed, progress.add()) {
      const double one = timed([&] { step(); });
      turns.steps[static_cast<size_t>(out.timed % period)].push_back(one);
      taken += one;
      spent += one;
    }
    for (double taken = 0; taken < turn / 2;) {
      turns.products.push_back(timed([&] { replay.once(); }));
      taken += turns.products.back();
      progress.add(static_cast<double>(period));
    }
  }
  out.interruptions = interruptions.per_second();
  double num_timed = 0;
  for (int64_t i = 0; i < period; ++i) {
    const std::vector<double>& times = turns.steps[static_cast<size_t>(i)];
    if (times.empty()) continue;
    out.step += median(times);
    out.tokens += work.tokens(i);
    ++num_timed;
  }
  out.step /= num_timed;
  out.tokens /= num_timed;
  out.products = median(turns.products) / static_cast<double>(period);
  return out;
}

Json measured(const std::string& name, const ParsedArguments& arguments) {
  release_cached();
  reset_peak();
  reset_resident_peak();
  Workload work = workload(name, arguments);
  const Autocast rounding(rounding_of(work.config->train.precision));
  RowProgress progress(name);
  const Times times = time_steps(work, arguments.integer("rounds", 0), progress);
  Json row =
      with_machine_metadata(Json::object({{"row", name},
                                          {"step_ms", 1e3 * times.step},
                                          {"tokens_per_s", times.tokens / times.step},
                                          {"products_ms", 1e3 * times.products},
                                          {"ratio", times.step / times.products},
                                          {"gflops", 1e-9 * times.product_flops / times.step},
                                          {"products_gflops", 1e-9 * times.product_flops / times.products},
                                          {"tensors_mib", static_cast<double>(times.tensors) / mebibyte},
                                          {"process_mib", static_cast<double>(times.resident) / mebibyte},
                                          {"mapped_bytes", times.mapped},
                                          {"tokens", times.tokens},
                                          {"steps", times.timed},
                                          {"batches", work.period},
                                          {"interruptions_per_s", times.interruptions},
                                          {"parameters", count_parameters(*work.model)}}));
  if (default_device != Device::cpu) {
    row.set("tflops", 1e-12 * times.flops / times.step);
    row.set("mfu", 100 * times.flops / times.step / product_rate(rounding_of(work.config->train.precision)));
    row.set("launches", times.launches);
    row.set("replayed", times.why_not_replayed.empty());
    row.set("why_not_replayed", times.why_not_replayed);
  }
  return row;
}

/// Its columns on a GPU. MFU is the percentage of a large product's rate in the same precision.
void on_device(const std::vector<std::string>& names, const ParsedArguments& arguments) {
  Table table({{"row", "row"},
               {"step ms", "step_ms", 3},
               {"tokens/s", "tokens_per_s", 0},
               {"products ms", "products_ms", 3},
               {"ratio", "ratio"},
               {"TFLOP/s", "tflops"},
               {"MFU %", "mfu", 1},
               {"launches", "launches", 0},
               {"replayed", "replayed"},
               {"tensors MiB", "tensors_mib", 0},
               {"mapped", "mapped_bytes", 0}},
              arguments.has("json"));
  std::string notes;
  for (const std::string& name : names) {
    const Json row = measured(name, arguments);
    table.row(row);
    const std::string why = row.at("why_not_replayed").text();
    if (!why.empty()) notes += text("  ", name, ": ", why, "\n");
  }
  if (!arguments.has("json") && !notes.empty()) io::printf("\nSteps run as they are\n%s", notes.c_str());
}

}  // namespace

void bench_train(const ParsedArguments& arguments) {
  std::vector<std::string> names(arguments.positional.begin() + 1, arguments.positional.end());
  if (names.empty()) {
    for (const Row& row : rows()) {
      if (!row.only_named) names.emplace_back(row.name);
    }
  }
  for (const std::string& name : names) check_name(name, "train");
  if (arguments.has("rounds")) integer_option(arguments, "rounds", 1, 1, 100000);
  if (default_device != Device::cpu) return on_device(names, arguments);
  Table table({{"row", "row"},
               {"step ms", "step_ms"},
               {"tokens/s", "tokens_per_s", 0},
               {"products ms", "products_ms"},
               {"ratio", "ratio"},
               {"GFLOP/s", "gflops", 0},
               {"alone", "products_gflops", 0},
               {"tensors MiB", "tensors_mib", 0},
               {"process MiB", "process_mib", 0},
               {"mapped", "mapped_bytes", 0}},
              arguments.has("json"));
  for (const std::string& name : names) table.row(measured(name, arguments));
}

}  // namespace heed::bench
