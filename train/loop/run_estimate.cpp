// Estimates memory and time of a run by computing a few of its steps before it starts.
#include "heed/train/loop/run_estimate.h"

#include <algorithm>
#include <functional>
#include <new>

#include "heed/autograd/autocast.h"
#include "heed/core/ceil_div.h"
#include "heed/core/device.h"
#include "heed/core/io/number_text.h"
#include "heed/core/memory/heap_cap.h"
#include "heed/core/memory/out_of_memory.h"
#include "heed/core/memory/storage.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/core/settings_in_errors.h"
#include "heed/train/config/setting_name.h"
#include "heed/train/loop/checkpoint_manager.h"
#include "heed/train/loop/find_non_finite.h"
#include "heed/train/loop/machine_memory.h"
#include "heed/train/loop/overfit.h"
#include "heed/train/loop/step_batches.h"
#include "heed/train/loop/worst_case_batches.h"
#include "heed/train/progress/progress.h"
#include "heed/train/tasks/map_provider.h"

namespace heed {
namespace {

// Seconds of measuring batches. At least a typical batch and one of the largest are measured.
constexpr double max_measuring_seconds = 60;
// A step is timed repeatedly until that took this many batches, this many seconds, or this fraction of the
// run: a single time varies too much on a machine that also does other work.
constexpr int64_t timed_batches = 15;
constexpr double timing_seconds = 1, timing_fraction = 0.03;
// A typical step that took more seconds than this when its memory was measured is not timed again.
constexpr double long_step_seconds = 10;

/// The name of an owner of memory in reports: a kind of memory, a module, "other". `model` may be null.
std::string name_of_owner(const void* owner, Module* model) {
  if (owner == nullptr) return "other";
  for (const char* const& kind : memory_kind_names) {
    if (owner == &kind) return kind;
  }
  return model != nullptr ? names_in(*model)(owner) : "the model";
}

/// Lists the first users of memory: "decoder.blocks.0.cross 50 MB, ...".
std::string list_of(const std::vector<std::pair<std::string, int64_t>>& users) {
  constexpr size_t max_listed = 5;
  std::string out;
  for (size_t i = 0; i < std::min(users.size(), max_listed); ++i)
    out += (i > 0 ? ", " : "") + users[i].first + " " + bytes_text(users[i].second);
  return out;
}

/// Advice on settings with which a run needs less memory: those of a batch, or those of the model.
std::string what_takes_less(const Config& config, bool by_batches) {
  const TrainOptions& train = config.train;
  const bool in_tokens = train.batch_size == 0;
  const int64_t batch = in_tokens ? train.batch_tokens : train.batch_size;
  if (by_batches && batch > 1) {
    const int64_t accumulation = std::min(2 * train.grad_accumulation, max_grad_accumulation);
    return text(
        in_tokens ? setting_advice("train.batch_tokens", "--batch-tokens", batch / 2, batch)
                  : setting_advice("train.batch_size", "--batch-size", batch / 2, batch),
        " with ",
        advice("--grad-accumulation ", "train.grad_accumulation = ", "FitOptions::grad_accumulation = "),
        accumulation);
  }
  if (settings_source() == SettingsSource::fit) return "a smaller model, or shorter inputs";
  return text("a smaller model.d_model (now ", config.model.d_model, "), model.layers (now ",
              config.model.layers, ") or model.max_length (now ", config.model.max_length, ")");
}

/// The relative error of an estimate; 0 where nothing was measured.
double relative_error(double estimated, double measured) {
  return measured > 0 ? (estimated - measured) / measured : 0.0;
}

/// Seconds and FLOPs of a batch or a step.
struct StepTime {
  double seconds = 0, flops = 0;
};

/// Seconds and FLOPs of a step over `accumulate` equal batches: the median of several steps with learning
/// rate 0. `first` is one batch that was measured before; a long one is not timed again.
StepTime time_of(const std::function<void()>& forward_backward, const StepTime& first, Optimizer& optimizer,
                 int64_t accumulate, int64_t steps) {
  const Device device = optimizer.values().device();
  const bool is_known = first.seconds > long_step_seconds;
  const int64_t timed = is_known ? 0 : std::min<int64_t>(accumulate, 4);  // batches timed per step
  std::vector<double> seconds;
  double flops = 0, spent = 0;
  do {
    const int64_t flops_before = Count::flops();
    synchronize(device);
    const double began = seconds_now();
    for (int64_t i = 0; i < timed; ++i) forward_backward();
    synchronize(device);
    const double computed = seconds_now();
    const int64_t flops_computed = Count::flops();
    optimizer.step(0);
    synchronize(device);
    const double ended = seconds_now(), num_batches = static_cast<double>(accumulate);
    const double batch_seconds = is_known ? first.seconds : (computed - began) / static_cast<double>(timed);
    const double batch_flops =
        is_known ? first.flops
                 : static_cast<double>(flops_computed - flops_before) / static_cast<double>(timed);
    seconds.push_back(batch_seconds * num_batches + ended - computed);
    flops = batch_flops * num_batches + static_cast<double>(Count::flops() - flops_computed);
    spent += ended - began;
  } while (!is_known && static_cast<int64_t>(seconds.size()) * timed < timed_batches &&
           spent < timing_seconds && spent < timing_fraction * seconds.front() * static_cast<double>(steps));
  const auto median = seconds.begin() + static_cast<int64_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), median, seconds.end());
  return {*median, flops};
}

/// Bytes of the other batches of a step, where all batches are held while one is computed.
int64_t bytes_of_other_batches(const TrainOptions& options, const Batch& batch) {
  if (!holds_batches(options)) return 0;
  int64_t bytes = 0;
  for (const Tensor& x : batch.tensors) bytes += x.bytes();
  return (options.grad_accumulation - 1) * bytes;
}

/// Seconds of one validation, and of scoring the test split.
struct ScoringTime {
  double validation = 0, test = 0;
};

/// Estimates the time of scoring by scoring the samples that the task gives.
ScoringTime time_of_scoring(const Task& task, Module& model, Device device) {
  ScoringTime out;
  for (const ValidationPart& part : task.validation_cost(model)) {
    if (part.some <= 0) continue;
    double seconds = 0;
    // The first run also allocates memory: where it was quick, the time of a second run counts.
    for (int run = 0; run < 2 && seconds < timing_seconds; ++run) {
      synchronize(device);
      const double began = seconds_now();
      part.compute();
      synchronize(device);
      seconds = seconds_now() - began;
    }
    out.validation += seconds * part.all / part.some;
    out.test += seconds * part.test / part.some;
  }
  return out;
}

/// Seconds that the attention maps of the report take; 0 where there are none.
double seconds_of_maps(const Task& task, Module& model) {
  const double began = seconds_now();
  const int64_t peak = memory_use().peak;
  double seconds = 0;
  try {
    std::string caption;
    map_provider(task).maps(model, "", caption);
    seconds = seconds_now() - began;
  } catch (const std::exception&) {  // the report is then made without maps
  }
  if (memory_use().peak > peak) reset_peak();  // the measured peak of a run is that of its training
  return seconds;
}

/// Sets the bytes of activations and their users: all memory between forward and backward except weights,
/// gradients and moments. `other_batches`: bytes of the other batches of the step.
void set_activations(Estimate& out, const std::vector<MemoryUser>& users, Module& model,
                     int64_t other_batches) {
  out.activations = 0;
  out.users.clear();
  for (const MemoryUser& user : users) {
    const std::string name = name_of_owner(user.owner, &model);
    if (name == "weights" || name == "gradients" || name == "moments") continue;
    const int64_t bytes = user.bytes + (user.owner == owner_of(MemoryKind::batches) ? other_batches : 0);
    out.activations += bytes;
    out.users.emplace_back(name, bytes);
  }
}

/// Sets the memory of the process, now and at its peak. Fault::memory where a checkpoint would not fit.
void set_process_memory(Estimate& out) {
  // A checkpoint is assembled in memory, and the best one is read back whole. Other memory of the run is
  // small: it fits into 2 MiB, part of which malloc may hold already.
  constexpr int64_t small_memory = int64_t{2} << 20;
  const int64_t later = out.weights + out.moments + std::max<int64_t>(small_memory - free_heap_bytes(), 0);
  out.now = resident_bytes();
  out.peak = std::max(peak_resident_bytes(), out.now + later);
  // Cached blocks are freed where a checkpoint needs the memory.
  const MemoryUse use = memory_use(Device::cpu);
  if (const int64_t left = std::min(free_bytes(), heap_left()) + use.reserved - use.live; later > left)
    fail(Fault::memory, "memory of the machine: this run needs about ", bytes_text(out.peak),
         ", and beside the ", bytes_text(out.now), " it holds only ", bytes_text(left),
         " are free; a checkpoint takes ", bytes_text(later), ". Use a smaller model.d_model or vocabulary.");
}

}  // namespace

Estimate estimate_run(const Config& config, Module& model, Optimizer& optimizer, Rng& rng, int64_t steps,
                      const BatchShard& shard) {
  Task& task = *config.task;
  const int64_t all = steps * config.train.grad_accumulation, overfit = config.train.overfit_batches;
  WorstCaseBatches batches(task, overfit > 0 ? std::min(overfit, all) : all);
  const int64_t tick = rng.tick(), draws = rng.draws();
  Estimate out;
  out.parameters = count_parameters(model);
  out.weights = optimizer.values().bytes();
  out.gradients = optimizer.gradients().bytes();
  out.moments = optimizer.moment_bytes();
  const auto make = [&](const BatchPlace& place) {
    const MemoryScope owned(MemoryKind::batches);
    task.plan(place.epoch);
    return shard.parts > 1 ? task.shard(place.position, shard) : task.batch(place.position);
  };
  const Device device = optimizer.values().device();
  std::vector<MemoryUser> users;
  const auto step = [&](const Batch& batch) {
    AuxiliaryLosses auxiliary;
    auxiliary.dry_run = true;
    Tensor loss = task.loss(model, batch, {.rng = &rng, .losses = &auxiliary});
    if (const Tensor auxiliary_loss = auxiliary.sum()) loss = loss + auxiliary_loss;
    users = memory_users();
    backward(loss);
    rng.restore(tick, draws);
  };
  try {
    const double began = seconds_now();
    StepTime first_batch;
    for (int64_t measured = 0; measured < 2 || seconds_now() - began < max_measuring_seconds; ++measured) {
      const std::optional<BatchPlace> place = batches.next();
      if (!place) break;
      reset_peak();
      const int64_t flops_before = Count::flops();
      const Batch batch = make(*place);
      step(batch);
      const int64_t others = bytes_of_other_batches(config.train, batch), peak = memory_use().peak + others,
                    flops = Count::flops() - flops_before;
      batches.record(static_cast<double>(peak), static_cast<double>(flops));
      if (measured == 0) {  // the typical batch comes first
        synchronize(device);
        first_batch = {seconds_now() - began, static_cast<double>(flops)};
      }
      if (peak <= out.tensors) continue;
      out.tensors = peak;
      set_activations(out, users, model, others);
    }
    optimizer.clear();
    const ScoringTime scoring = time_of_scoring(task, model, device);
    out.validation_seconds = scoring.validation;
    out.test_seconds = scoring.test;
    out.tests = task.scores_last() ? 2 : 1;
    const Batch batch = make(batches.typical());  // timed now that its memory is allocated
    const auto forward_backward = [&] { step(batch); };
    const StepTime typical =
        time_of(forward_backward, first_batch, optimizer, config.train.grad_accumulation, steps);
    out.step_seconds = typical.seconds;
    out.flops = typical.flops;
    optimizer.reset();
  } catch (...) {
    explain_memory(config, &model,
                   "in one of the largest batches, computed before the first step to see what is needed");
  }
  out.tensors = std::max(out.tensors, memory_use().peak);
  out.report_seconds = seconds_of_maps(task, model);
  out.seconds = out.step_seconds * batches.mean_over_typical() * static_cast<double>(steps);
  out.validations = ceil_div(steps, validate_every(config.train, steps, plan_epoch(config, 0)));
  set_process_memory(out);
  return out;
}

int64_t validate_every(const TrainOptions& options, int64_t steps, int64_t batches) {
  if (options.validate_every > 0) return options.validate_every;
  if (!options.validate_each_epoch) return std::max<int64_t>(steps / 10, 1);
  return std::max<int64_t>(batches / options.grad_accumulation, 1);
}

int64_t steps_of(const TrainOptions& options, int64_t batches) {
  if (options.max_steps > 0) return options.max_steps;
  // A step may take batches of two epochs; only the last step of the run may have fewer batches.
  return std::max<int64_t>(ceil_div(options.epochs * batches, options.grad_accumulation), 1);
}

int64_t steps_of(const Config& config) {
  const int64_t batches = plan_epoch(config, 0);
  if (batches < 1) fail(Fault::data, "train: the training split makes no batch. Give more data.");
  return steps_of(config.train, batches);
}

Estimate estimate_run(const Config& config) {
  const Autocast rounding(rounding_of(config.train.precision));
  Rng rng(static_cast<uint64_t>(config.train.seed));
  const int64_t steps = steps_of(config);
  const std::unique_ptr<Module> model = new_model(config, rng);
  check_savable(*model);
  Optimizer optimizer(*model, config.optimizer_options());
  return estimate_run(config, *model, optimizer, rng, steps);
}

std::string place_of_tensors() { return default_device == Device::cpu ? "" : " on the GPU"; }

Estimate remaining_estimate(Estimate whole, int64_t steps, int64_t taken, int64_t every) {
  whole.seconds *= static_cast<double>(steps - taken) / static_cast<double>(steps);
  const int64_t validations = ceil_div(steps, every);  // the last step is always validated
  whole.validations = taken < steps ? validations - taken / every : 0;
  return whole;
}

std::vector<std::pair<std::string, std::string>> estimate_lines(const Estimate& e, int64_t steps,
                                                                bool is_rest) {
  const std::string flops = formatted("%.3g GFLOP", e.flops * 1e-9);
  return {{"parameters", short_number(static_cast<double>(e.parameters))},
          {"step", text(flops, ", about ", static_cast<int64_t>(e.step_seconds * 1000 + 0.5), " ms with ",
                        threads(), " threads")},
          {"memory", text(bytes_text(e.now), " now, ", bytes_text(e.peak), " peak (estimate); tensors ",
                          bytes_text(e.tensors), place_of_tensors())},
          {"", text("weights ", bytes_text(e.weights), ", gradients ", bytes_text(e.gradients), ", moments ",
                    bytes_text(e.moments), ", activations ", bytes_text(e.activations))},
          {"", "activations by module: " + list_of(e.users)},
          {"time", text("about ", clock_text(e.whole()), is_rest ? " for the " : " for ", steps,
                        steps == 1 ? " step" : " steps", is_rest ? " left, " : ", ", e.validations,
                        e.validations == 1 ? " validation" : " validations", " and the test (estimate)")}};
}

Json estimate_json(const Estimate& e) {
  return Json::object({{"memory_bytes", e.peak},
                       {"tensor_bytes", e.tensors},
                       {"weight_bytes", e.weights},
                       {"gradient_bytes", e.gradients},
                       {"moment_bytes", e.moments},
                       {"activation_bytes", e.activations},
                       {"flops_a_step", e.flops},
                       {"seconds_of_steps", e.seconds},
                       {"seconds_of_test", e.after_steps()},
                       {"seconds", e.whole()}});
}

Json measured_cost_json(const Estimate& e, double step_seconds, double validation_seconds) {
  const int64_t tensors = memory_use().peak, peak = peak_resident_bytes();
  Json measured = Json::object(
      {{"memory_bytes", peak},
       {"tensor_bytes", tensors},
       {"memory_estimate_off", relative_error(static_cast<double>(e.peak), static_cast<double>(peak))},
       {"tensor_estimate_off",
        relative_error(static_cast<double>(e.tensors), static_cast<double>(tensors))}});
  set_measured_times(measured, e, step_seconds, validation_seconds, 0);
  return measured;
}

void set_measured_times(Json& measured, const Estimate& e, double step_seconds, double validation_seconds,
                        double test_seconds) {
  const double seconds = step_seconds + validation_seconds + test_seconds;
  // Before the test is scored, only the time before it is compared.
  const double estimated = e.whole() - (test_seconds > 0 ? 0 : e.after_steps());
  measured.set("seconds_of_steps", step_seconds);
  measured.set("seconds_of_test", test_seconds);
  measured.set("seconds", seconds);
  measured.set("time_estimate_off", relative_error(estimated, seconds));
}

std::string with_estimate(double measured, double off, const std::function<std::string(double)>& words) {
  constexpr double max_unmentioned = 0.2;  // relative error up to which the estimate is not shown
  const std::string value = words(measured), expected = words(measured * (1 + off));
  if (off <= -1 || std::abs(off) <= max_unmentioned || value == expected) return value;
  return value + " (the estimate was " + expected + ")";
}

void explain_memory(const Config& config, Module* model, const std::string& when) {
  constexpr std::string_view general = " Use a smaller batch, length or model.";
  std::string what;
  Device device = last_shortage();
  bool by_batches = false;  // whether a smaller batch would need less of any of this
  try {
    throw;
  } catch (const Error& error) {
    if (error.fault() != Fault::memory) throw;
    what = error.what();
  } catch (const std::bad_alloc& error) {
    what = out_of_memory_text(error);
    device = Device::cpu;
    by_batches =
        model != nullptr;  // it ran out on the heap, and the lists of batches are made after the model
  }
  if (what.ends_with(general)) what.resize(what.size() - general.size());  // repeated with numbers below
  constexpr int64_t min_named_bytes = 100000;
  std::vector<std::pair<std::string, int64_t>> users;
  for (const MemoryUser& user : memory_users_at_failure(device)) {
    const std::string name = name_of_owner(user.owner, model);
    by_batches |= name != "other" && name != "weights" && name != "gradients" && name != "moments";
    if (user.bytes >= min_named_bytes) users.emplace_back(name, user.bytes);
  }
  const std::string held =
      users.empty() ? "Little was held yet." : text("Most was held by ", list_of(users), ".");
  fail(Fault::memory, what, " It ran out ", when, ". ", held, " Try ", what_takes_less(config, by_batches),
       ", or a greater ", advice("--memory", "cap_memory()"), " where that is the limit.");
}

}  // namespace heed
