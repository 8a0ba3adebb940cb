// Writes, restores, marks and removes the checkpoints of a run.
#include "heed/train/loop/checkpoint_manager.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "heed/core/io/hash.h"
#include "heed/core/io/json.h"
#include "heed/core/io/safetensors.h"
#include "heed/core/memory/storage.h"
#include "heed/core/settings_in_errors.h"
#include "heed/train/config/setting_name.h"
#include "heed/train/loop/find_non_finite.h"
#include "heed/train/loop/machine_memory.h"
#include "heed/train/loop/overfit.h"

namespace heed {

void check_savable(Module& model) {
  const auto count = static_cast<int64_t>(tensors(model).size());
  if (count <= max_tensors) return;
  fail("the model has ", count, " tensors, and a checkpoint holds at most ", max_tensors, ". ",
       advice("Lower model.layers.", "Use fewer layers."));
}

CheckpointManager::CheckpointManager(Config& config, const RunFolder& folder, Module& model,
                                     Optimizer& optimizer, Rng& rng, ProcessGroup& group, RunState& state,
                                     StepLog& log, const std::optional<Checkpoint>& resume)
    : config_(config),
      folder_(folder),
      model_(model),
      optimizer_(optimizer),
      rng_(rng),
      group_(group),
      state_(state),
      log_(log) {
  if (resume) restore(*resume);
}

void CheckpointManager::restore(const Checkpoint& checkpoint) {
  load_bytes(model_, checkpoint.file("model.safetensors"),
             (checkpoint.folder / "model.safetensors").string());
  optimizer_.load(checkpoint.file("optim.safetensors"));
  read_state(checkpoint);
  rng_.restore(state_.tick, state_.draws);
  saved_ = state_.step;
}

void CheckpointManager::read_state(const Checkpoint& checkpoint) {
  const std::string& bytes = checkpoint.file("state.json");
  const std::string name = (checkpoint.folder / "state.json").string();
  const Json json = parse_json(bytes, name);
  try {
    state_ = read_run_state(json, checkpoint.step, config_.train.grad_accumulation);
    if (const int64_t planned = plan_epoch(config_, state_.epoch); state_.position > planned)
      fail(Fault::data, "position is ", state_.position, ". It must be 0 to ", planned,
           ", the batches of epoch ", state_.epoch,
           ": either it is damaged, or the data is not what the run was trained on.");
  } catch (const Error& error) {
    if (error.fault() != Fault::data) throw;
    fail(Fault::data, name, ", bytes 0-", bytes.size() - 1, ": ", error.what(),
         advice(" Take another checkpoint: --checkpoint.", " Take another checkpoint.",
                " To go on from an older checkpoint, remove this one."));
  }
}

std::string CheckpointManager::last_good() const {
  return saved_ > 0 ? text(" Last good: ", checkpoint_folder(folder_.path(), saved_).filename(), ".")
                    : " No checkpoint was there yet.";
}

void CheckpointManager::truncate() {
  if (folder_.is_none()) return;
  group_.together_on_main([&] {
    // Cut the log last: a process that is killed in between leaves a run that resumes from an earlier
    // checkpoint, and a log that still has all lines up to it.
    drop_checkpoints_after(folder_.path(), state_.step);
    update_best();
    log_.truncate();
  });
}

void CheckpointManager::save() {
  check_same_weights();
  group_.together([&] { write(); });
  if (!folder_.is_none()) saved_ = state_.step;
}

void CheckpointManager::mark_best() {
  if (folder_.is_none()) return;
  group_.together_on_main([&] { heed::mark_best(folder_.path(), state_.step); });
}

void CheckpointManager::write() {
  // The last update may have overflowed although loss and gradient were finite. Such weights are not saved.
  StepBatches none;
  const bool weights_are_finite = std::isfinite(optimizer_.value_norm());
  const std::string bad =
      weights_are_finite ? find_bad_buffer(model_) : find_bad_value(model_, none, {}, [] {});
  if (!weights_are_finite || !bad.empty())
    fail(Fault::numeric, "train: the weights stopped being finite at step ", state_.step, ": ",
         bad.empty() ? no_bad_value : bad, ".", last_good(), " Lower ", setting_name("train.learning_rate"),
         " (now ", config_.train.schedule.learning_rate, ").");
  if (!group_.is_main() || folder_.is_none()) return;
  log_.sync();
  // The files are assembled in memory: cached blocks are freed where they leave too little.
  if (free_bytes() < 2 * (optimizer_.values().bytes() + optimizer_.moment_bytes()))
    release_cached(Device::cpu);
  state_.tick = rng_.tick();
  state_.draws = rng_.draws();
  std::vector<NamedBytes> files = config_.task->artifacts();
  {
    const AveragedWeights averaged(optimizer_);
    files.push_back({"model.safetensors", save_bytes(model_)});
  }
  files.push_back({"optim.safetensors", optimizer_.save()});
  files.push_back({"state.json", to_json(state_)});
  write_checkpoint(folder_.path(), state_.step, files);
  if (!std::exchange(noted_, true)) folder_.note_checkpoint(state_.step);
  saved_ = state_.step;
  update_best();
  prune_checkpoints(folder_.path(), config_.train.keep_checkpoints, best_step(folder_.path()));
}

void CheckpointManager::update_best() {
  const std::vector<int64_t> steps = list_checkpoints(folder_.path());
  const auto exists = [&](int64_t step) {
    return std::find(steps.begin(), steps.end(), step) != steps.end();
  };
  const std::optional<int64_t> marked = best_step(folder_.path());
  std::optional<int64_t> best = marked;
  if (state_.best && exists(state_.best_step))
    best = state_.best_step;
  else if (marked && !exists(*marked) && exists(state_.step))
    best = state_.step;
  if (best != marked) heed::mark_best(folder_.path(), *best);
}

void CheckpointManager::check_same_weights() const {
  if (group_.size() == 1) return;
  const Tensor weights = optimizer_.values().to(Device::cpu);
  const uint32_t checksum =
      crc32c(std::string_view(static_cast<const char*>(weights.raw()), static_cast<size_t>(weights.bytes())));
  const std::vector<double> checksums = group_.all_gather(static_cast<double>(checksum));
  for (size_t i = 1; i < checksums.size(); ++i) {
    if (checksums[i] == checksums[0]) continue;
    throw CollectiveError(
        Fault::device,
        text("train: at step ", state_.step, " the weights of process ", i + 1, " of ", checksums.size(),
             " are not those of process 1.", last_good(),
             " Processors that differ add up differently: give all processes the same HEED_ISA "
             "(portable always works), the same heed and the same OpenBLAS."));
  }
}

}  // namespace heed
