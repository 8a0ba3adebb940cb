// fit() and evaluate(): the training loop of the program for a model, data and loss of your own.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "heed/core/distributed/single_process.h"
#include "heed/data/batching/data_loader.h"
#include "heed/nn/attention.h"
#include "heed/train/config/config.h"
#include "heed/train/loop/train_callback.h"
#include "heed/train/metrics/metric.h"
#include "heed/train/optim/optimizer.h"
#include "heed/train/optim/schedule.h"

namespace heed {

/// How fit() trains.
struct FitOptions {
  int64_t epochs = 0;  ///< passes over the data; above 0 unless `steps` is
  int64_t steps = 0;   ///< steps in all; above 0 unless `epochs` is
  /// The learning rate of each step; noam is refused, since it needs a width: rsqrt has its shape.
  Schedule schedule{.kind = ScheduleKind::constant, .learning_rate = 1e-3, .warmup_steps = 0};
  OptimizerOptions optimizer = {};       ///< update rule, weight decay, clipping
  int64_t grad_accumulation = 1;         ///< batches whose gradients make one step
  Precision precision = Precision::f32;  ///< f64 converts the model
  uint64_t seed = 1;  ///< seed of dropout; weights and order of the data have seeds of their own

  DataLoader* validation = nullptr;  ///< scored now and then; null: no validation
  /// Scores of a validation; the first decides which checkpoint is best. Empty: mean_loss().
  std::vector<std::shared_ptr<Metric>> metrics = {};
  int64_t validate_every = 0;  ///< steps; 0: once an epoch, or with `steps` ten times in all
  int64_t patience = 0;        ///< validations without a better one before training stops; 0: never
  double stop_score = 0;       ///< validation score, the first, at which training stops; 0: never
  double time_limit = 0;       ///< seconds of training before it saves and stops; 0: none
  std::vector<Callback*> callbacks = {};  ///< called in this order; they must outlive the call
  /// Who share each batch. Null: all processes that mpirun or srun has started, by join_processes(); alone,
  /// or with &single_process(), each trains for itself.
  ProcessGroup* processes = nullptr;

  /// The run folder: checkpoints, metrics.jsonl and TensorBoard events; made where it is missing. A folder
  /// with checkpoints is resumed, bit-identical to an uninterrupted run, on the data and with the options
  /// that it was trained with: Dataset::identity() tells data apart, and only epochs, steps, patience,
  /// stop_score, time_limit, on_nan, validate_every and keep_checkpoints may change. Empty: nothing is
  /// written.
  Path folder = {};
  int64_t keep_checkpoints = 2;  ///< newest checkpoints kept, beside the best
  OnNan on_nan = OnNan::stop;    ///< at a step whose loss or gradient is not finite
  bool quiet = false;            ///< prints no progress to standard error

  /// Two steps with a validation after each, whatever epochs, steps, patience, stop_score and time_limit
  /// say: does everything work? Checkpoints go to a temporary folder in TMPDIR, which is removed; `folder`
  /// stays untouched.
  bool fast_dev_run = false;
  /// Above 0: trains on the first so many batches again and again, without dropout, and validates on them:
  /// can the model learn at all?
  int64_t overfit_batches = 0;
};

/// Why a call of fit() ended.
enum class FitEnd {
  steps,       ///< all steps of FitOptions::steps or epochs are taken
  patience,    ///< FitOptions::patience validations in a row brought nothing better
  score,       ///< a validation was as good as FitOptions::stop_score
  time_limit,  ///< FitOptions::time_limit is over
  signal,      ///< a signal came: FitResult::stopped_by
};

/// The name of the enumerator: "time_limit".
const char* to_string(FitEnd end);

/// How a call of fit() ended.
struct FitResult {
  FitEnd end = FitEnd::steps;  ///< why it ended
  int64_t step = 0;            ///< steps taken, those before resuming included
  int64_t best_step = 0;       ///< step of the best validation; 0: none
  Scores best = {};            ///< scores of the best validation
  double seconds = 0;          ///< seconds of training, validations included
  bool early = false;          ///< patience or time limit ended it: see `end`
  int stopped_by = 0;          ///< a signal's number, or 0: see fit()
};

/// The loss of one batch: rank 0, a mean over it.
using LossFunction = std::function<LossOutput(const Batch&, const ForwardContext&)>;

namespace detail {
FitResult fit(Module& model, DataLoader& loader, const LossFunction& loss, const FitOptions& options);
Scores evaluate(DataLoader& loader, const LossFunction& loss,
                const std::vector<std::shared_ptr<Metric>>& metrics);

/// loss(model, batch, context) as a LossFunction, whether it gives a Tensor or a LossOutput.
template <class Model, class Loss>
LossFunction bound(Model& model, Loss& loss) {
  return [&](const Batch& batch, const ForwardContext& context) -> LossOutput {
    if constexpr (std::convertible_to<
                      std::invoke_result_t<Loss&, Model&, const Batch&, const ForwardContext&>, Tensor>)
      return {.loss = loss(model, batch, context)};
    else
      return loss(model, batch, context);
  };
}
}  // namespace detail

/// Trains `model` on the batches of `loader`, from its epoch 0 on. `loss(model, batch, context)` gives the
/// batch's mean loss as a Tensor of rank 0, or a LossOutput where metrics need logits; it passes the context
/// on to the model, for dropout. The model keeps the weights of the last step; the folder has the best ones.
/// Model and batches are on the default device: DefaultDevice.
/// Unless quiet, its last line on standard error says why it ended: FitResult::end.
/// The same seeds give the same bits, for any number of threads. A signal such as that of Ctrl-C ends it
/// after its step, and saves where there is a folder. Afterwards the program's own handlers are in force
/// again, and the signal is raised again: it ends a program that does not handle it, and reaches a handler of
/// the program once. Where the program has a StopSignals, it is not raised, a signal that came before the
/// call ends fit() before its first step, and StopSignals::received() goes on telling it. Fails for options
/// out of range, for a folder of a run with other data or options (FitOptions::folder), and where numbers
/// stop being finite. Several processes (docs/how-to/several-processes.md) call it with the same model, data
/// and options: each computes its rows of every batch, the gradients are summed, and all end with the same
/// weights. The main one validates, prints and writes. What fails for all of them is thrown in each; what
/// fails in one alone is printed there, and ends all.
template <class Model, class Loss>
FitResult fit(Model& model, DataLoader& loader, Loss loss, const FitOptions& options) {
  return detail::fit(model, loader, detail::bound(model, loss), options);
}

/// The metrics of all batches of the loader's epoch 0, without dropout and tape. The loader's position stays.
/// Empty `metrics`: mean_loss().
template <class Model, class Loss>
Scores evaluate(Model& model, DataLoader& loader, Loss loss,
                const std::vector<std::shared_ptr<Metric>>& metrics = {}) {
  return detail::evaluate(loader, detail::bound(model, loss), metrics);
}

}  // namespace heed
