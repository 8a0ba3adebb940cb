// A user's model, loader and loss as a Task, for the Trainer.
#include "heed/train/fit.h"

#include <algorithm>
#include <csignal>
#include <mutex>

#include "heed/attention/spec.h"
#include "heed/autograd/backward_findings.h"
#include "heed/autograd/tape.h"
#include "heed/core/counted_work.h"
#include "heed/core/io/files.h"
#include "heed/core/io/hash.h"
#include "heed/core/io/temporary_folder.h"
#include "heed/core/settings_in_errors.h"
#include "heed/data/text/text.h"
#include "heed/train/distributed/processes.h"
#include "heed/train/fit_end.h"
#include "heed/train/fit_run.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/loop/trainer.h"
#include "heed/train/run/resume_point.h"

namespace heed {
namespace {

/// A module with the tensors of another module, under the same names, which it does not own.
class ModuleView final : public Module {
 public:
  explicit ModuleView(Module& module) : module_(module) {}
  void fields(Fields& f) override { module_.fields(f); }

 private:
  Module& module_;
};

/// Makes a Task of a loader, a loss and metrics.
class LoaderTask final : public Task {
 public:
  LoaderTask(Module& model, DataLoader& loader, const LossFunction& loss, const FitOptions& options)
      : model_(model), loader_(loader), loss_(loss), options_(options) {}

  FitData data = {};  ///< description of the data, saved in checkpoints

  std::unique_ptr<Module> model(const Config&, Rng&) const override {
    return std::make_unique<ModuleView>(model_);
  }
  std::vector<NamedBytes> artifacts() const override { return data_files(data); }
  std::vector<std::pair<std::string, std::string>> metadata() const override {
    return {{"data", loader_.description()}};
  }

  int64_t plan(int64_t epoch) override {
    epoch_ = epoch;
    return loader_.batches();
  }
  Batch batch(int64_t position) const override {
    const std::lock_guard lock(loader_turn_);
    loader_.seek({epoch_, position});  // keeps prefetched batches where the position is the next one
    return loader_.next();
  }
  double weight(int64_t position) const override {
    const std::lock_guard lock(loader_turn_);
    return static_cast<double>(loader_.rows_at({epoch_, position}));
  }
  std::vector<std::string> tensor_names() const override {
    const std::lock_guard lock(loader_turn_);
    std::vector<std::string> names;
    for (size_t i = 0; i < loader_.at({0, 0}).tensors.size(); ++i) names.push_back(text("tensor ", i));
    return names;
  }
  Tensor loss(Module&, const Batch& batch, const ForwardContext& context) const override {
    ForwardContext own = context;
    if (options_.overfit_batches > 0) own.rng = nullptr;  // no dropout
    const LossOutput output = loss_(batch, own);
    if (!output.loss || output.loss.size() != 1)
      fail("fit: the loss function gives ",
           output.loss ? text("a tensor ", output.loss.shape()) : std::string("an empty tensor"),
           ". It must give one number, the mean over the batch.");
    if (output.logits && output.targets)
      resolve_auxiliary_losses(context.losses, output.logits, output.targets);
    return reshape(output.loss, Shape{});
  }

  bool has_validation() const override { return options_.validation != nullptr; }
  Scores validate(Module&) const override {
    std::unique_lock lock(loader_turn_, std::defer_lock);
    if (options_.validation == &loader_) lock.lock();
    return detail::evaluate(*options_.validation, loss_, options_.metrics);
  }
  Evaluation test(Module& model, const DecodeOptions&) const override {
    Evaluation result;
    result.scores = validate(model);
    return result;
  }

 private:
  Module& model_;
  DataLoader& loader_;
  const LossFunction& loss_;
  const FitOptions& options_;
  int64_t epoch_ = 0;
  mutable std::mutex
      loader_turn_;  // a loader is for one thread, and Prefetch has another one than validation
};

Config config_of(Module& model, DataLoader& loader, const LossFunction& loss, const FitOptions& options) {
  if ((options.epochs > 0) == (options.steps > 0))
    fail("fit: epochs = ", options.epochs, " and steps = ", options.steps,
         ". Set one of them above 0 and leave the other 0.");
  for (size_t i = 0; i < options.callbacks.size(); ++i)
    if (options.callbacks[i] == nullptr) fail("fit: FitOptions::callbacks[", i, "] is null.");
  for (size_t i = 0; i < options.metrics.size(); ++i)
    if (!options.metrics[i]) fail("fit: FitOptions::metrics[", i, "] is null.");
  if (options.patience > 0 && options.validation == nullptr)
    fail("fit: patience = ", options.patience, " counts validations. Set FitOptions::validation too.");
  if (options.stop_score != 0 && options.validation == nullptr)
    fail("fit: stop_score = ", options.stop_score, " is for validations. Set FitOptions::validation too.");
  if (options.schedule.kind == ScheduleKind::noam)
    fail("fit: the schedule noam needs the width of a model. Use rsqrt, which has the same shape.");
  Config config;
  config.task_name = "fit";
  config.task = std::make_unique<LoaderTask>(model, loader, loss, options);
  TrainOptions& train = config.train;
  train.seed = static_cast<int64_t>(options.seed);
  train.epochs = options.epochs;
  train.max_steps = options.steps;
  train.batch_size = loader.options().batch_size;
  train.grad_accumulation = options.grad_accumulation;
  train.precision = options.precision;
  train.schedule = options.schedule;
  train.optimizer = options.optimizer;
  check_groups(options.optimizer.groups);
  train.groups = to_string(options.optimizer.groups);
  train.keep_checkpoints = options.keep_checkpoints;
  train.patience = options.patience;
  train.stop_score = options.stop_score;
  train.time_limit = options.time_limit;
  train.on_nan = options.on_nan;
  train.estimate = false;
  train.validate_every = options.validate_every;
  train.overfit_batches = options.overfit_batches;
  config.check();
  if (options.validate_every == 0 && options.epochs > 0) {
    TrainOptions epoch = train;
    epoch.epochs = 1;
    const int64_t few = options.overfit_batches > 0 ? options.overfit_batches : loader.batches();
    train.validate_every = steps_of(epoch, std::min(few, loader.batches()));
  }
  return config;
}

/// The run folder, locked: a new one, or the existing one.
RunFolder open_folder(const Path& path, const TrainOptions& train) {
  const Path whole = path.has_filename() ? path : path.parent_path();  // "runs/mine/" is runs/mine
  if (io::exists(whole / "config.toml")) return RunFolder::resume(whole, "fit");
  const Path parent = whole.parent_path();
  return RunFolder::create({.out = parent.empty() ? Path(".") : parent,
                            .name = whole.filename().string(),
                            .command = "fit",
                            .config = fit_settings_text(train)});
}

/// An identity that config and JSON can hold.
std::string identity_of(DataLoader& loader) {
  const std::string identity = loader.identity();
  return invalid_utf8(identity) == identity.npos ? identity : "sha256:" + sha256_hex(identity);
}

FitData data_of(DataLoader& loader, const FitOptions& options) {
  FitData data{.batches = loader.description(), .examples = identity_of(loader)};
  if (options.validation == nullptr) return data;
  data.validation = identity_of(*options.validation);
  data.best_by = (options.metrics.empty() ? mean_loss() : options.metrics[0])->name();
  return data;
}

/// Fails, in all processes, where a loader differs from that of the main one.
void check_same_data(ProcessGroup& group, const FitData& data) {
  const std::string batches = group.broadcast(data.batches), examples = group.broadcast(data.examples);
  group.together([&] {
    if (data.batches == batches && data.examples == examples) return;
    const bool is_size = data.batches != batches;
    fail(Fault::data, "fit: the loader has ", is_size ? data.batches : shown(data.examples, 100),
         ", and that of process 1 has ", is_size ? batches : shown(examples, 100),
         ". Give all processes the same data.");
  });
}

/// What FitOptions::fast_dev_run makes of the other options.
FitOptions shortened(FitOptions options) {
  options.epochs = 0;
  options.steps = 2;
  options.validate_every = 1;
  options.patience = 0;
  options.stop_score = 0;
  options.time_limit = 0;
  return options;
}

/// Warns once where the loss function gives the model no random numbers, so that dropout is left out.
class OmittedDropoutWarning final : public Callback {
 public:
  void after_step(const TrainContext& context, const StepResult&) override {
    const double rate = take_backward_findings().omitted_dropout;
    if (rate == 0 || has_warned_ || !context.group.is_main()) return;
    has_warned_ = true;
    io::print_error(
        text("fit: the loss function leaves out dropout = ", rate,
             ", since it gives the model no random numbers.\nLet it pass its ForwardContext on, or "
             "make the model with dropout = 0.\n"));
  }

 private:
  bool has_warned_ = false;
};

FitEnd end_of(const TrainResult& done, const Trainer& trainer) {
  if (done.stopped_by != 0) return FitEnd::signal;
  if (!done.early) return FitEnd::steps;
  if (trainer.score_reached()) return FitEnd::score;
  return trainer.patience_exhausted() ? FitEnd::patience : FitEnd::time_limit;
}

/// "fit: resumes runs/mine at step 39 with FitOptions::epochs = 4, before 3"
std::string describe_resume(const RunFolder& folder, int64_t step,
                            const std::vector<ChangedOption>& changed) {
  std::string words = text("fit: resumes ", folder.path(), " at step ", step);
  for (const ChangedOption& one : changed)
    words += (&one == changed.data() ? " with " : "; ") + to_string(one);
  return words + "\n";
}

/// fit() in one of the processes of `group`, which all have the same arguments.
FitResult fit_in_group(ProcessGroup& group, Module& model, DataLoader& loader, const LossFunction& loss,
                       const FitOptions& options) {
  std::optional<Config> config;
  FitData data;
  group.together([&] {
    config.emplace(config_of(model, loader, loss, options));
    if (!options.folder.empty() || group.size() > 1) data = data_of(loader, options);
    static_cast<LoaderTask&>(*config->task).data = data;
  });
  check_same_data(group, data);
  // The main process alone has the folder.
  std::optional<io::TemporaryFolder> temporary;  // folder of a run that leaves nothing
  RunFolder folder = options.folder.empty() ? RunFolder::none() : RunFolder::elsewhere(options.folder);
  std::optional<Checkpoint> resume;
  std::vector<ChangedOption> changed;
  group.together_on_main([&] {
    if (folder.is_none()) return;
    if (options.fast_dev_run) temporary.emplace("fast-dev-run");
    folder = open_folder(temporary ? temporary->path() / "run" : options.folder, config->train);
    changed = changed_fit_options(config->train, folder);
    resume = resume_point(folder).checkpoint;
    if (!resume) return;  // no step was kept: it begins with these data and options
    check_fit_data(data, *resume, folder.path());
    check_fit_options(changed, folder.path());
  });
  spread_checkpoint(group, folder.path(), resume);
  Progress progress;
  progress.quiet = options.quiet || !group.is_main();
  if (group.size() > 1) {
    progress.say("processes", text(group.size(), ", which share each batch of ", loader.options().batch_size,
                                   " examples"));
  }
  std::optional<Trainer> trainer;
  OmittedDropoutWarning omitted_dropout;
  std::vector<Callback*> callbacks = options.callbacks;
  if (options.overfit_batches == 0) callbacks.push_back(&omitted_dropout);
  group.together([&] { trainer.emplace(*config, folder, resume, progress, group, std::move(callbacks)); });
  if (resume && !progress.quiet) io::print_error(describe_resume(folder, resume->step, changed));
  const bool is_complete = trainer->is_complete();
  group.together_on_main([&] {
    if (!folder.is_none() && !is_complete)
      begin_fit_session(folder, config->train, data, changed, group.size(), trainer->step());
  });
  const TrainResult done = trainer->run();
  const FitResult result{.end = end_of(done, *trainer),
                         .step = done.step,
                         .best_step = done.best_step,
                         .best = done.best,
                         .seconds = done.seconds,
                         .early = done.early,
                         .stopped_by = done.stopped_by};
  if (!progress.quiet) {
    FitOptions kept = options;
    if (options.fast_dev_run) kept.folder.clear();
    io::print_error(describe_end(result, kept, done.steps_taken));
  }
  return result;
}

}  // namespace

FitResult detail::fit(Module& model, DataLoader& loader, const LossFunction& loss,
                      const FitOptions& options) {
  const SettingsSourceScope source(SettingsSource::fit);
  ProcessGroup& group = options.processes != nullptr ? *options.processes : join_processes();
  FitResult done;
  try {
    done = fit_in_group(group, model, loader, loss, options.fast_dev_run ? shortened(options) : options);
  } catch (const CollectiveError&) {
    throw;
  } catch (...) {
    if (group.size() > 1) end_all(group);
    throw;
  }
  const int64_t taken = options.overfit_batches > 0 ? 0 : done.step * options.grad_accumulation;
  loader.seek({taken / loader.batches(), taken % loader.batches()});
  if (done.stopped_by != 0 && !StopSignals::any_alive()) std::raise(done.stopped_by);
  return done;
}

Scores detail::evaluate(DataLoader& loader, const LossFunction& loss,
                        const std::vector<std::shared_ptr<Metric>>& metrics) {
  for (size_t i = 0; i < metrics.size(); ++i)
    if (!metrics[i]) fail("evaluate: metric ", i, " of ", metrics.size(), " is null.");
  const std::vector<std::shared_ptr<Metric>> all =
      metrics.empty() ? std::vector<std::shared_ptr<Metric>>{mean_loss()} : metrics;
  const NoGrad no_grad;
  const LoaderPosition before = loader.position();
  for (const auto& metric : all) metric->reset();
  loader.seek({0, 0});
  CountedWork work(static_cast<double>(loader.batches()));
  for (const Batch& batch : loader) {
    const LossOutput output = loss(batch, {});
    for (const auto& metric : all) metric->add(output, batch);
    work.add();
  }
  loader.seek(before);
  Scores scores{.list = {}, .lower_is_better = all[0]->lower_is_better()};
  for (const auto& metric : all) scores.list.emplace_back(metric->name(), metric->value());
  return scores;
}

}  // namespace heed
