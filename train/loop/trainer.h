// The loop: from a config to a trained model in a run folder.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "autograd/rounding.h"
#include "core/group.h"
#include "train/anomaly.h"
#include "train/config.h"
#include "train/estimate.h"
#include "train/exchange.h"
#include "train/prefetch.h"
#include "train/progress.h"
#include "train/replay.h"
#include "train/run_folder.h"
#include "train/step_batches.h"
#include "train/task.h"

namespace heed {

struct RunState;

/// How a run ended.
struct Outcome {
  int64_t step = 0;
  int64_t best_step = 0;
  Scores best;
  double step_seconds = 0;        ///< of the steps of this sitting alone
  int64_t steps_taken = 0;        ///< in this sitting
  double validation_seconds = 0;  ///< of the validations of this sitting
  int64_t validations = 0;        ///< in this sitting
  double seconds = 0;             ///< of training, validations included, over all sittings
  int stopped_by = 0;             ///< a signal's number, or 0
  int64_t skipped = 0;            ///< steps left out because their numbers were not finite
  int64_t replayed = 0;           ///< of this sitting: steps done again as a recorded piece
  bool early = false;             ///< patience or the time limit ended it
  bool finished() const { return stopped_by == 0; }
};

/// Trains one run. Every step is a function of (config, step), so a resumed run ends with the bits of one
/// that never stopped. The members of a group take a step together: each computes its share of every batch,
/// the gradients are added up, and all update their own copy of the weights alike. Only the first scores and
/// writes into the folder.
class Trainer {
 public:
  /// The task is loaded, the folder locked. `resume` holds the checkpoint to go on from. The members of a
  /// group hold the same config and checkpoint.
  Trainer(Config& config, RunFolder& folder, const std::optional<Checkpoint>& resume, Progress& progress,
          Group* group = nullptr);

  /// Trains to the end, a signal, or a limit; saves on the way and at the end.
  Outcome run();
  Module& model() { return *model_; }
  /// What the whole run is expected to take.
  const Estimate& estimate() const { return estimate_; }
  int64_t total_steps() const { return total_; }
  int64_t step() const { return step_; }
  /// Have as many validations passed without a better one as train.patience allows? Then run() takes no step.
  bool tired() const;

 private:
  /// What one step gave.
  struct Step {
    double loss = 0, norm = 0, rate = 0;
    double tokens = 0;
    bool skipped = false;  // loss or gradient was not finite, and nothing was changed
  };
  /// A buffer as it was before a step: modules write into it, or put another in its place.
  struct Kept {
    Tensor* place;
    Tensor was, numbers;
  };
  /// What lasts as long as one run().
  struct Sitting {
    double began = 0, earlier_seconds = 0;  // of sittings before this one
    int64_t first_step = 0, log_every = 1;
    double window_start = 0, window_tokens = 0;  // since the last line of metrics
    Progress::Now now = {};
  };

  /// Steps on batches of the same shapes, in tensors that stay where they are, so that they can be replayed.
  struct Lane {
    StepBatches batches;
    std::unique_ptr<Replay> replay;
    int64_t draws = 0;  // where the random numbers stood before
  };

  Outcome train();
  bool leads() const { return group_ == nullptr || group_->leads(); }
  void meet();  // before the first step of a sitting
  /// That the weights are the same everywhere; fails where they are not.
  void compare_weights();
  void spread_buffers();
  /// What the steps change besides parameters.
  std::vector<Named> buffers() const;
  /// The first value in them that is not finite, in words, or nothing. Waits for the device.
  std::string bad_buffer() const;
  void keep_buffers();  // before a step that may be skipped
  void restore_buffers();
  Scores scores() const;
  /// What somebody of all members was told from outside, and whether the first has no time left.
  struct Told {
    int signal = 0;     // to stop, by this one
    bool late = false;  // as given for the first
    bool save = false;  // to save and go on
  };
  Told told(bool late) const;
  std::string agreed(const std::string& bad) const;
  /// The first words that are not empty of all members', with the member's name; or nothing.
  std::string first_said(const std::string& words) const;
  void begin_draws(int64_t batch, int64_t batches);
  /// Puts this member's share of the step's weight where the sweep reads it: of batch number i, of all.
  void begin_share(int64_t i, double part, double whole);
  void begin_shares(StepBatches& batches);
  /// Forward and backward of this member's shares; with `send`, gradients and losses are summed over all.
  std::vector<Tensor> sweep_shares(StepBatches& batches, bool first, bool send);
  double loss_of(const StepBatches& batches, const std::vector<double>& losses) const;
  void restore(const Checkpoint& checkpoint);
  void restore_state(const RunState& state);
  Step take_step(bool first);
  /// Whether something is planted here now: of a group, in the last member alone.
  bool plants(Plant::Where where) const {
    return plant_.due(where, step_) && (group_ == nullptr || group_->rank() + 1 == group_->size());
  }
  /// Of the next step; with prefetching on the CPU, until fresh() or into() brings them over.
  StepBatches next_batches();
  /// The same, made one by one.
  StepBatches planned_batches();
  /// Makes them from `place` on, and moves it.
  std::vector<Batch> make_batches(DataPlace& place) const;
  /// Of the planned epoch; of a group, this member's share of it.
  Batch batch_at(int64_t position) const;
  /// Forward and backward; the losses of the batches.
  std::vector<Tensor> sweep(StepBatches& batches, bool first);
  /// The same for looking at it: the other members know nothing of it.
  void sweep_again(StepBatches& batches);
  /// Forward, backward and update; numbers_ holds what came of it.
  void compute(StepBatches& batches, bool first);
  /// Forward, backward and update of these very batches.
  void sweep_and_update(StepBatches& batches, bool first);
  /// The lane of these batches, which it now holds; null where such steps run as they are.
  Lane* lane_of(StepBatches& batches);
  void tell_why_not(const std::string& why);  // steps are not replayed; once
  void stop_or_skip(const Step& step, const std::string& bad);
  std::string last_good() const;
  void note(Sitting& sitting, const Step& done);  // in the metrics and on the line of progress
  bool over(const Sitting& sitting) const;
  Scores validate();                       // and logs it
  void take_scores(const Scores& scores);  // into the state of the run, and keeps the best
  void validate_in(Sitting& sitting);
  void validate_late(Outcome& outcome);  // where the time limit ended the sitting
  void save();
  void write();   // the checkpoint of this step
  void rewind();  // drops what came after the checkpoint that the run goes on from
  void mark();    // the best that there is, in the folder
  std::string state() const;

  Config& config_;
  RunFolder& folder_;
  Progress& progress_;
  Group* group_;
  ProductsRounded rounding_;  // while this lives: of training and validation
  Rng rng_;
  std::unique_ptr<Module> model_;
  std::unique_ptr<Optimizer> optimizer_;
  // Before the lanes, so after them in the end: NCCL waits for every graph that holds its sums.
  std::unique_ptr<Exchange> exchange_;  // of a group
  Tensor factors_, tail_;               // of a group, [batches a step]: shares of the weight; losses
  std::map<std::string, Lane> lanes_;   // by the shapes of their batches
  bool told_why_ = false;               // that steps are not replayed
  std::unique_ptr<Prefetch> prefetch_;
  Tensor numbers_;                       // of a step, on the device: losses of its batches, squared norm
  std::vector<Kept> kept_;               // while steps may be skipped
  std::unique_ptr<MetricsLog> metrics_;  // of the first member
  int64_t total_ = 0;
  int64_t step_ = 0;
  DataPlace place_;             // behind the batches of the last step
  int64_t planned_epoch_ = -1;  // that the task has planned, where batches are made one by one
  int64_t saved_ = -1, validated_ = -1, best_step_ = 0, without_better_ = 0;
  std::optional<Scores> best_;
  int64_t skipped_ = 0, skipped_in_a_row_ = 0, replayed_ = 0;
  Plant plant_;
  Estimate estimate_;
  double step_seconds_ = 0, validation_seconds_ = 0;
  int64_t validations_ = 0;
  double earlier_seconds_ = 0;  // of training so far
  double window_loss_ = 0;      // summed since the last line of metrics
  int64_t window_steps_ = 0;
};

}  // namespace heed
