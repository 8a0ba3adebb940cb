// The training loop.
#include "train/trainer.h"

#include <atomic>
#include <cmath>
#include <csignal>

#include "core/io.h"
#include "core/json.h"

namespace heed {
namespace {

std::atomic<int> stop_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);  // so a handler may touch it

void on_signal(int number) {
  if (stop_signal != 0) {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
  stop_signal = number;
}

}  // namespace

StopSignals::StopSignals() {
  stop_signal = 0;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

StopSignals::~StopSignals() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

int StopSignals::received() { return stop_signal; }

Trainer::Trainer(Config& config, RunFolder& folder, const std::optional<Checkpoint>& resume,
                 Progress& progress)
    : config_(config),
      folder_(folder),
      progress_(progress),
      rng_(static_cast<uint64_t>(config.train.seed)),
      metrics_(folder.metrics_log()) {
  model_ = config.task->model(config, rng_);
  rng_.advance();  // tick 0 made the weights; step t draws at tick t
  optimizer_ = std::make_unique<Optimizer>(*model_, config.train.optimizer);
  batches_ = config.task->plan(0);
  if (batches_ < 1) fail(Fault::data, "train: the training split makes no batch. Give more data.");
  const int64_t per_epoch = std::max<int64_t>(batches_ / config.train.accumulate, 1);
  total_ = config.train.steps > 0 ? config.train.steps : config.train.epochs * per_epoch;
  if (resume) restore(*resume);
  metrics_.rewind(step_);
}

std::string Trainer::state() const {
  Json json = Json::object();
  json.set("step", step_);
  json.set("epoch", epoch_);
  json.set("position", position_);
  json.set("tick", rng_.tick());
  json.set("draws", rng_.draws());
  json.set("validated", validated_);
  json.set("best_step", best_step_);
  json.set("without_better", without_better_);
  json.set("seconds", earlier_seconds_);
  json.set("window_loss", window_loss_);
  json.set("window_steps", window_steps_);
  if (best_) {
    json.set("lower_is_better", best_->lower_is_better);
    Json list = Json::object();
    for (const auto& [name, value] : best_->list) list.set(name, value);
    json.set("best", list);
  }
  return json.dump(1) + "\n";
}

void Trainer::restore(const Checkpoint& checkpoint) {
  load(*model_, checkpoint.file("model.safetensors"));
  optimizer_->load(checkpoint.file("optim.safetensors"));
  const Json json = parse_json(checkpoint.file("state.json"), (checkpoint.folder / "state.json").string());
  step_ = json.at("step").integer();
  epoch_ = json.at("epoch").integer();
  position_ = json.at("position").integer();
  validated_ = json.at("validated").integer();
  best_step_ = json.at("best_step").integer();
  without_better_ = json.at("without_better").integer();
  earlier_seconds_ = json.at("seconds").real();
  if (json.find("window_loss") != nullptr) {
    window_loss_ = json.at("window_loss").real();
    window_steps_ = json.at("window_steps").integer();
  }
  rng_.restore(json.at("tick").integer(), json.at("draws").integer());
  if (json.find("best") != nullptr) {
    Scores scores;
    scores.lower_is_better = json.at("lower_is_better").boolean();
    for (const auto& [name, value] : json.at("best").members()) scores.list.emplace_back(name, value.real());
    best_ = scores;
  }
  batches_ = config_.task->plan(epoch_);
  saved_ = step_;
}

int64_t Trainer::next_position() {
  if (position_ == batches_) {
    batches_ = config_.task->plan(++epoch_);
    position_ = 0;
  }
  return position_++;
}

void Trainer::check_finite(double loss, double norm) {
  if (std::isfinite(loss) && std::isfinite(norm)) return;
  const std::string good = saved_ >= 0 ? text(" Last good: step ", saved_, ".") : "";
  fail(Fault::numeric, "train: ", std::isfinite(loss) ? "the gradient norm" : "the loss", " became ",
       std::isfinite(loss) ? norm : loss, " at step ", step_, ".", good, " Lower train.rate (now ",
       config_.train.schedule.rate, "), or find the place with --anomaly true.");
}

Scores Trainer::validate() {
  const NoTape no_tape;
  const Scores scores = config_.task->validate(*model_);
  std::vector<Scalar> numbers;
  for (const auto& [name, value] : scores.list) numbers.emplace_back("valid_" + name, value);
  metrics_.log(step_, numbers);
  validated_ = step_;
  if (!best_ || scores.better_than(*best_)) {
    best_ = scores;
    best_step_ = step_;
    without_better_ = 0;
  } else {
    ++without_better_;
  }
  return scores;
}

void Trainer::save() {
  if (saved_ == step_) return;
  // The last update may have left the range of numbers although loss and gradient had not: such weights are
  // not kept.
  if (!std::isfinite(optimizer_->value_norm())) {
    fail(Fault::numeric, "train: the weights stopped being finite at step ", step_, ".",
         saved_ >= 0 ? text(" Last good: step ", saved_, ".") : std::string(), " Lower train.rate (now ",
         config_.train.schedule.rate, ").");
  }
  metrics_.sync();
  std::vector<NamedBytes> files = config_.task->sealed();
  files.push_back({"model.safetensors", heed::save(*model_)});
  files.push_back({"optim.safetensors", optimizer_->save()});
  files.push_back({"state.json", state()});
  write_checkpoint(folder_.path(), step_, files);
  saved_ = step_;
  // A run that went on from an earlier checkpoint leaves what came after that behind.
  bool best_is_there = false;
  for (const int64_t step : list_checkpoints(folder_.path())) {
    if (step > step_) io::remove_all(checkpoint_folder(folder_.path(), step));
    best_is_there = best_is_there || step == best_step_;
  }
  const std::optional<int64_t> marked = best_step(folder_.path());
  if (best_ && best_step_ == step_) {
    mark_best(folder_.path(), step_);
  } else if (marked && *marked > step_) {
    mark_best(folder_.path(), best_is_there ? best_step_ : step_);
  }
  prune_checkpoints(folder_.path(), config_.train.keep, best_step(folder_.path()));
}

Outcome Trainer::run() {
  const StopSignals signals;
  const TrainOptions& options = config_.train;
  const int64_t validate_every =
      options.validate_every > 0 ? options.validate_every : std::max<int64_t>(total_ / 10, 1);
  const int64_t checkpoint_every = options.checkpoint_every > 0 ? options.checkpoint_every : validate_every;
  const int64_t log_every = std::max<int64_t>(1, std::min<int64_t>(10, total_ / 200));
  const double began = seconds_now();
  const double before = earlier_seconds_;
  double window_start = began;
  double window_tokens = 0;
  const int64_t first_step = step_;
  Outcome outcome;
  Progress::Now now;
  now.total = total_;
  std::optional<Trace> trace;
  if (options.anomaly) trace.emplace([this](const void* module) { return name_of(*model_, module); });
  const auto due = [&] { return step_ == total_ || step_ % validate_every == 0; };
  const auto tired = [&] { return options.patience > 0 && without_better_ >= options.patience; };
  const auto over = [&] {
    return options.time_limit > 0 && seconds_now() - began + before >= options.time_limit;
  };
  if (step_ > 0 && due() && validated_ != step_) {  // a signal came between this step and its validation
    validate();
    saved_ = -1;
    save();
  }
  while (step_ < total_ && !tired() &&
         (saved_ < 0 || !over())) {  // a run that has nothing to show takes one step
    std::vector<Batch> batches;
    double weight = 0;
    for (int64_t i = 0; i < options.accumulate; ++i) {
      batches.push_back(config_.task->batch(next_position()));
      weight += batches.back().weight;
    }
    const Pass pass{.noise = &rng_};
    std::vector<std::pair<Tensor, double>> losses;
    for (const Batch& batch : batches) {
      Tensor loss = config_.task->loss(*model_, batch, pass);
      if (step_ == first_step) check_listed(*model_, loss);
      const double share = weight > 0 ? batch.weight / weight : 0;
      losses.emplace_back(loss.detach(), share);
      if (batches.size() > 1) loss = loss * share;
      backward(loss);
      window_tokens += static_cast<double>(batch.tokens);
    }
    ++step_;
    const double rate = options.schedule.at(step_, total_, config_.model.width);
    optimizer_->step(rate);
    rng_.advance();
    // Up to here nothing has waited for the device; numbers are read when the whole step has been asked for.
    double loss_value = 0;
    for (const auto& [loss, share] : losses) loss_value += loss.item() * share;
    const double norm = optimizer_->gradient_norm();
    check_finite(loss_value, norm);
    window_loss_ += loss_value;
    ++window_steps_;
    const double time = seconds_now();
    now.step = step_;
    now.loss = loss_value;
    now.norm = norm;
    now.tokens_per_second = window_tokens / std::max(time - window_start, 1e-9);
    now.seconds_left =
        (time - began) / static_cast<double>(step_ - first_step) * static_cast<double>(total_ - step_);
    earlier_seconds_ = before + time - began;
    if (step_ % log_every == 0 || step_ == total_) {
      metrics_.log(step_, {{"loss", window_loss_ / static_cast<double>(window_steps_)},
                           {"rate", rate},
                           {"gradient_norm", norm},
                           {"tokens_per_second", now.tokens_per_second}});
      window_loss_ = window_tokens = 0;
      window_steps_ = 0;
      window_start = time;
    }
    const int signal = StopSignals::received();
    const bool late = over();
    if (signal == 0 && (due() || late)) {
      const double paused = seconds_now();
      const Scores scores = validate();
      for (const auto& [name, value] : scores.list) {
        if (name == "loss" || &name == &scores.list.front().first) now.validation = value;
        if (name == "bleu") now.bleu = value;
      }
      window_start += seconds_now() - paused;
      earlier_seconds_ = before + seconds_now() - began;
    }
    progress_.step(now);
    if (signal != 0 || late || step_ % checkpoint_every == 0 || validated_ == step_) save();
    outcome.stopped_by = signal;
    if (signal != 0 || late) break;
  }
  progress_.finish_line();
  outcome.step = step_;
  outcome.early = outcome.stopped_by == 0 && step_ < total_;
  outcome.best_step = best_step_;
  if (best_) outcome.best = *best_;
  outcome.seconds = earlier_seconds_;
  return outcome;
}

}  // namespace heed
