// fit() and evaluate(): a program's own model, data and loss.
#include "heed/train/fit.h"

#include <cmath>
#include <csignal>

#include "heed/autograd/ops.h"
#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/core/memory/storage.h"
#include "heed/nn/linear.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/temporary_parent.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/metrics_log.h"

using namespace heed;

namespace {

/// Points in the plane, and whether they lie outside of the unit circle.
TensorDataset points(int64_t count, uint64_t seed) {
  Rng rng(seed);
  Tensor x(Shape{count, 2});
  fill_uniform(x, -1.5, 1.5, rng);
  const std::vector<float> at = x.to_host();
  std::vector<int32_t> outside;
  for (size_t i = 0; i < at.size(); i += 2) outside.push_back(std::hypot(at[i], at[i + 1]) > 1 ? 1 : 0);
  return TensorDataset({x, Tensor::of<int32_t>(outside, Shape{count})});
}

struct Net final : Module {
  explicit Net(uint64_t seed) : rng(seed), hidden(2, 16, rng), classes(16, 2, rng) {}
  Tensor operator()(const Tensor& x, const ForwardContext& context) const {
    return classes(dropout(relu(hidden(x)), 0.1, context.rng));
  }
  void fields(Fields& f) override {
    f("hidden", hidden);
    f("classes", classes);
  }
  Rng rng;
  Linear hidden, classes;
};

LossOutput loss(Net& net, const Batch& batch, const ForwardContext& context) {
  const Tensor logits = net(batch[0], context);
  return {.loss = cross_entropy(logits, batch[1]), .logits = logits, .targets = batch[1]};
}

const TensorDataset& training() {
  static const TensorDataset all = points(200, 1);
  return all;
}
const TensorDataset& held_out() {
  static const TensorDataset all = points(100, 2);
  return all;
}

FitOptions quick(int64_t epochs = 3) {
  FitOptions options{.epochs = epochs};
  options.schedule.learning_rate = 1e-2;
  options.quiet = true;
  return options;
}

/// The weights after fit() with these options, from the same start.
std::string trained(FitOptions options, int64_t prefetch = 2) {
  Net net(5);
  DataLoader loader(training(), {.batch_size = 16, .shuffle = true, .prefetch = prefetch});
  DataLoader validation(held_out(), {.batch_size = 50});
  options.validation = &validation;
  fit(net, loader, loss, options);
  return save_bytes(net);
}

/// Raises a signal after a step, and counts what the loop calls.
struct Counting final : Callback {
  int64_t signal_at = -1, steps = 0, validations = 0, saves = 0;
  std::vector<double> rates;
  void after_step(const TrainContext& context, const StepResult& result) override {
    ++steps;
    rates.push_back(result.rate);
    if (context.step == signal_at) std::raise(SIGTERM);
  }
  void after_validation(const TrainContext&, const Scores&) override { ++validations; }
  void after_save(const TrainContext&) override { ++saves; }
};

volatile std::sig_atomic_t caught = 0;

/// A program that handles SIGTERM itself.
struct HandlesSigterm {
  HandlesSigterm() {
    caught = 0;
    std::signal(SIGTERM, [](int number) { caught = number; });
  }
  ~HandlesSigterm() { std::signal(SIGTERM, SIG_DFL); }
};

}  // namespace

TEST_CASE("fit: a model learns, and evaluate() says how well") {
  Net net(5);
  DataLoader loader(training(), {.batch_size = 16, .shuffle = true}), test(held_out(), {.batch_size = 30});
  const auto metrics = std::vector{accuracy(), mean_loss()};
  const Scores before = evaluate(net, test, loss, metrics);
  FitOptions options = quick(30);
  options.validation = &test;
  options.metrics = metrics;
  const FitResult result = fit(net, loader, loss, options);
  CHECK(result.step == 30 * 13);
  CHECK(result.stopped_by == 0);
  CHECK(!result.early);
  CHECK(loader.position() == LoaderPosition{30, 0});
  const Scores after = evaluate(net, test, loss, metrics);
  REQUIRE(after.list.size() == 2);
  CHECK(after.list[0].first == "accuracy");
  CHECK(after.list[1].first == "loss");
  CHECK(!after.lower_is_better);
  CHECK(after.first() > 0.9);
  CHECK(after.first() > before.first());
  CHECK(after.list[1].second < before.list[1].second / 2);
  CHECK(result.best.first() >= after.first());
  CHECK(!io::exists("ckpt"));  // without a folder nothing is written
  CHECK(!io::exists("metrics.jsonl"));
}

TEST_CASE(
    "fit: evaluate() is the mean over all examples, without dropout, and leaves the loader where it is") {
  Net net(5);
  DataLoader loader(held_out(), {.batch_size = 30});
  loader.next();
  const Scores scores = evaluate(net, loader, loss);
  REQUIRE(scores.list.size() == 1);
  CHECK(scores.list[0].first == "loss");
  CHECK(loader.position() == LoaderPosition{0, 1});
  DataLoader whole(held_out(), {.batch_size = 100});
  const Batch all = whole.next();
  CHECK(scores.first() == Approx(cross_entropy(net(all[0], {}), all[1]).item()).epsilon(1e-5));
  // A loss function may give the loss alone.
  const auto alone = [](Net& model, const Batch& batch, const ForwardContext& context) {
    return loss(model, batch, context).loss;
  };
  CHECK(evaluate(net, loader, alone).first() == scores.first());
  CHECK_THROWS_WITH(evaluate(net, loader, alone, {accuracy()}), containing("no logits and targets"));
}

TEST_CASE("fit: the same seeds give the same bits, whatever is made ahead") {
  const std::string once = trained(quick());
  CHECK((trained(quick()) == once));
  CHECK((trained(quick(), 0) == once));
  FitOptions other = quick();
  other.seed = 2;  // seed of dropout
  CHECK((trained(other) != once));
}

TEST_CASE("fit: a run that a signal stops goes on when it is called again, with the same bits") {
  const std::string whole = trained(quick());
  const Scratch scratch;
  FitOptions options = quick();
  options.folder = scratch / "run";
  for (const int64_t at : {5, 13, 20}) {
    const HandlesSigterm handles;
    Net net(5);
    DataLoader loader(training(), {.batch_size = 16, .shuffle = true});
    DataLoader validation(held_out(), {.batch_size = 50});
    Counting stop;
    stop.signal_at = at;
    options.callbacks = {&stop};
    options.validation = &validation;
    const FitResult result = fit(net, loader, loss, options);
    CHECK(result.stopped_by == SIGTERM);
    CHECK(caught == SIGTERM);  // raised again
    CHECK(result.step == at);
    CHECK(list_checkpoints(options.folder).back() == at);
    CHECK(loader.position() == LoaderPosition{at / 13, at % 13});
  }
  options.callbacks = {};
  CHECK((trained(options) == whole));
  CHECK(list_checkpoints(options.folder).back() == 39);
  CHECK((trained(options) == whole));  // nothing is left to do: the weights are loaded
  options.epochs = 4;
  CHECK((trained(options) != whole));
  CHECK(list_checkpoints(options.folder).back() == 52);
}

TEST_CASE("fit: groups, a moving average and a schedule of one's own are resumed with the same bits") {
  FitOptions options = quick();
  options.optimizer.ema = 0.9;
  options.optimizer.groups = {{.match = "classes.*", .weight_decay = 0.1, .rate = 0.5}};
  options.schedule.rate_of_step = [](int64_t t, int64_t total) {
    return 1e-2 * (1 - static_cast<double>(t) / static_cast<double>(total));
  };
  const std::string whole = trained(options);
  const Scratch scratch;
  options.folder = scratch / "run";
  {
    const HandlesSigterm handles;
    Counting stop;
    stop.signal_at = 17;
    options.callbacks = {&stop};
    trained(options);
    CHECK(stop.rates[2] == Approx(1e-2 * (1 - 3.0 / 39)));
  }
  options.callbacks = {};
  CHECK((trained(options) == whole));
  CHECK((io::read(options.folder / "ckpt" / "step_000039" / "model.safetensors") == whole));
  FitOptions other = options;
  other.optimizer.ema = 0.8;
  CHECK_THROWS_WITH(trained(other), containing("ema = 0.8, before 0.9"));
  other = options;
  other.optimizer.groups[0].rate = 2;
  CHECK_THROWS_WITH(trained(other), containing("classes.*: weight_decay=0.1, rate=2"));
  options.folder = Path();
  options.schedule.rate_of_step = [](int64_t, int64_t) { return -1.0; };
  CHECK_THROWS_WITH(trained(options), containing("rate_of_step(1, 39) gives -1"));
}

TEST_CASE("fit: the run folder holds metrics, events and the best weights") {
  const Scratch scratch;
  Net net(5);
  DataLoader loader(training(), {.batch_size = 16, .shuffle = true}), test(held_out(), {.batch_size = 30});
  FitOptions options = quick(10);
  Counting calls;
  options.callbacks = {&calls};
  options.validation = &test;
  options.metrics = {accuracy()};
  options.folder = scratch / "runs/mine";
  const FitResult result = fit(net, loader, loss, options);
  CHECK(calls.steps == 130);
  CHECK(calls.validations == 10);  // once an epoch
  CHECK(calls.saves == 10);
  std::vector<double> scores;
  for (const MetricSeries& series : read_metrics(options.folder / "metrics.jsonl")) {
    if (series.name == "valid_accuracy") scores = series.values;
    if (series.name == "loss") CHECK(series.values.back() < series.values.front());
  }
  REQUIRE(scores.size() == 10);
  CHECK(*std::max_element(scores.begin(), scores.end()) == result.best.first());
  CHECK(!io::list(options.folder / "tb").empty());
  REQUIRE(best_step(options.folder) == result.best_step);
  load(net, checkpoint_folder(options.folder, result.best_step) / "model.safetensors");
  CHECK(evaluate(net, test, loss, {accuracy()}).first() == result.best.first());
  CHECK_THROWS_WITH(read_config(io::read(options.folder / "config.toml"), "config.toml"),
                    containing("a run of fit() by a program"));
}

TEST_CASE("fit: steps, schedule, accumulation and patience are what the options say") {
  Net net(5);
  DataLoader loader(training(), {.batch_size = 16}), test(held_out(), {.batch_size = 30});
  FitOptions options = quick(0);
  Counting calls;
  options.callbacks = {&calls};
  options.steps = 10;
  options.grad_accumulation = 2;
  options.schedule = {.kind = ScheduleKind::linear, .learning_rate = 1, .warmup_steps = 5, .min_lr_ratio = 0};
  CHECK(fit(net, loader, loss, options).step == 10);
  CHECK(loader.position() == LoaderPosition{1, 7});
  REQUIRE(calls.rates.size() == 10);
  CHECK(calls.rates[0] == Approx(0.2));
  CHECK(calls.rates[4] == Approx(1));
  CHECK(calls.rates[9] == Approx(0).margin(1e-12));
  CHECK(calls.validations == 0);
  CHECK(calls.saves == 0);

  FitOptions still = quick(50);
  still.schedule.learning_rate = 0;  // no validation is better than the first
  still.validation = &test;
  still.patience = 3;
  const FitResult result = fit(net, loader, loss, still);
  CHECK(result.early);
  CHECK(result.step == 4 * 13);
  CHECK(result.best_step == 13);
}

TEST_CASE("fit: what cannot be is refused with its reason") {
  Net net(5);
  DataLoader loader(training(), {.batch_size = 16});
  const auto refuses = [&](const std::string& words, const std::function<void(FitOptions&)>& change) {
    FitOptions options = quick();
    change(options);
    CHECK_THROWS_WITH(fit(net, loader, loss, options), containing(words));
  };
  refuses("epochs = 3 and steps = 4", [](FitOptions& o) { o.steps = 4; });
  refuses("epochs = 0 and steps = 0", [](FitOptions& o) { o.epochs = 0; });
  refuses("Set FitOptions::validation too", [](FitOptions& o) { o.patience = 2; });
  refuses("stop_score = 0.5 is for validations", [](FitOptions& o) { o.stop_score = 0.5; });
  refuses("Use rsqrt", [](FitOptions& o) { o.schedule.kind = ScheduleKind::noam; });
  // Each by the name that a program sets it by.
  refuses("FitOptions::grad_accumulation = 0", [](FitOptions& o) { o.grad_accumulation = 0; });
  refuses("FitOptions::keep_checkpoints = 0", [](FitOptions& o) { o.keep_checkpoints = 0; });
  refuses("FitOptions::optimizer.beta1 = 2", [](FitOptions& o) { o.optimizer.beta1 = 2; });
  refuses("FitOptions::schedule.min_lr_ratio = 2", [](FitOptions& o) { o.schedule.min_lr_ratio = 2; });
  refuses("FitOptions::overfit_batches = 99, but an epoch has 13",
          [](FitOptions& o) { o.overfit_batches = 99; });
  refuses("FitOptions::folder: 'a run' cannot name a run", [](FitOptions& o) { o.folder = "a run"; });
  const auto rows = [](Net& model, const Batch& batch, const ForwardContext& context) {
    return model(batch[0], context);
  };
  CHECK_THROWS_WITH(fit(net, loader, rows, quick()), containing("gives a tensor [16, 2]"));
  const auto none = [](Net&, const Batch&, const ForwardContext&) { return Tensor(); };
  CHECK_THROWS_WITH(fit(net, loader, none, quick()), containing("gives an empty tensor"));
  const auto infinite = [](Net& model, const Batch& batch, const ForwardContext& context) {
    return loss(model, batch, context).loss * INFINITY;
  };
  CHECK(fault_of([&] { fit(net, loader, infinite, quick()); }) == Fault::numeric);
  CHECK_THROWS_WITH(fit(net, loader, infinite, quick()),
                    containing("Lower FitOptions::schedule.learning_rate (now 0.01)") &&
                        containing("FitOptions::on_nan = OnNan::skip.") && !containing("--"));

  const Scratch scratch;
  FitOptions options = quick(1);
  options.folder = scratch / "run";
  fit(net, loader, loss, options);
  DataLoader other(training(), {.batch_size = 8});
  CHECK_THROWS_WITH(
      fit(net, other, loss, options),
      containing("was trained on 200 examples in batches of 16") && containing("in batches of 8"));
  scratch.file("file", "no folder");
  options.folder = scratch / "file";
  CHECK_THROWS_AS(fit(net, loader, loss, options), Error);
}

TEST_CASE("fit: a run is resumed on the data that it was trained on, and on no other") {
  const Scratch scratch;
  const TensorDataset others = points(200, 3), other_held_out = points(100, 4);
  const auto call = [&](const TensorDataset& data, const TensorDataset* held,
                        std::vector<std::shared_ptr<Metric>> metrics = {}) {
    Net net(5);
    DataLoader loader(data, {.batch_size = 16, .shuffle = true});
    DataLoader validation(held != nullptr ? *held : held_out(), {.batch_size = 50});
    FitOptions options = quick();
    options.folder = scratch / "run";
    if (held != nullptr) options.validation = &validation;
    options.metrics = std::move(metrics);
    fit(net, loader, loss, options);
  };
  const Path folder = scratch / "run";
  call(training(), &held_out());
  const std::string before = io::read(folder / "manifest.json") + io::read(folder / "metrics.jsonl");
  CHECK(fault_of([&] { call(others, &held_out()); }) == Fault::data);
  CHECK_THROWS_WITH(call(others, &held_out()), containing("was trained on other examples: sha256:") &&
                                                   containing("name another folder") &&
                                                   containing("Dataset::identity()"));
  CHECK_THROWS_WITH(call(training(), &other_held_out), containing("was validated on other examples"));
  CHECK_THROWS_WITH(call(training(), &held_out(), {accuracy(), mean_loss()}),
                    containing("chooses its best checkpoint by loss") && containing("now that is accuracy"));
  CHECK(io::read(folder / "manifest.json") + io::read(folder / "metrics.jsonl") == before);
  call(training(), &held_out(), {mean_loss(), accuracy()});
  call(training(), nullptr);

  // A checkpoint of an earlier program, which did not keep what the examples are, is believed.
  const Checkpoint last = open_checkpoint(folder);
  std::vector<NamedBytes> files;
  for (const auto& [name, bytes] : last.files) {
    if (name != "data.json") files.push_back({name, bytes});
  }
  write_checkpoint(folder, last.step, files);
  call(others, &held_out());
}

TEST_CASE("fit: a run is resumed with its own options, but for those that no step depends on") {
  const Scratch scratch;
  FitOptions options = quick();
  options.folder = scratch / "run";
  trained(options);
  const auto config = [&] { return io::read(options.folder / "config.toml"); };
  const auto manifest = [&] { return parse_json(io::read(options.folder / "manifest.json"), "manifest"); };
  const std::string before = config();
  const auto refused = [&](const std::string& words, const std::function<void(FitOptions&)>& change) {
    FitOptions other = options;
    other.epochs = 4;
    change(other);
    CHECK(fault_of([&] { trained(other); }) == Fault::usage);
    CHECK_THROWS_WITH(trained(other), containing("was trained with other options: " + words + ". Give") &&
                                          containing("name another folder"));
    CHECK(config() == before);
    CHECK(manifest().at("sessions").list().size() == 1);
  };
  refused("FitOptions::seed = 7, before 1", [](FitOptions& o) { o.seed = 7; });
  refused(
      "FitOptions::schedule.learning_rate = 0.02, before 0.01; FitOptions::optimizer.weight_decay = 0.5, "
      "before 0.01",
      [](FitOptions& o) {
        o.schedule.learning_rate = 2e-2;
        o.optimizer.weight_decay = 0.5;
      });
  refused("FitOptions::schedule.kind = cosine, before constant",
          [](FitOptions& o) { o.schedule.kind = ScheduleKind::cosine; });
  refused("FitOptions::precision = f64, before f32", [](FitOptions& o) { o.precision = Precision::f64; });
  refused("FitOptions::grad_accumulation = 2, before 1", [](FitOptions& o) { o.grad_accumulation = 2; });
  refused("FitOptions::overfit_batches = 2, before 0", [](FitOptions& o) { o.overfit_batches = 2; });
  CHECK(list_checkpoints(options.folder).back() == 39);

  options.epochs = 0;
  options.steps = 52;
  options.patience = 9;
  options.time_limit = 1000;
  options.on_nan = OnNan::skip;
  options.keep_checkpoints = 1;
  options.validate_every = 10;
  trained(options);
  CHECK(list_checkpoints(options.folder).back() == 52);
  CHECK_THAT(config(), containing("max_steps = 52\n") && containing("patience = 9\n") &&
                           containing("epochs = 0\n") && containing("on_nan = \"skip\"\n"));
  const std::vector<Json> sessions = manifest().at("sessions").list();
  REQUIRE(sessions.size() == 2);
  CHECK(sessions[0].at("step").integer() == 0);
  CHECK(sessions[0].find("changed") == nullptr);
  CHECK(sessions[1].at("step").integer() == 39);
  const Json& changed = sessions[1].at("changed");
  CHECK(changed.members().size() == 7);
  CHECK(changed.at("train.patience").dump() == R"({"value": "9", "before": "0"})");
  CHECK_THAT(manifest().at("examples").text(), containing("sha256:"));
  CHECK(manifest().at("first_checkpoint").integer() == 13);
  trained(options);  // nothing is left to do, so it is no session
  CHECK(manifest().at("sessions").list().size() == 2);
}

TEST_CASE("fit: a folder of another task, or without its checkpoints, is refused") {
  const Scratch scratch;
  FitOptions options = quick(1);
  options.folder = scratch / "run";
  io::make_directories(scratch / "other");
  io::write(scratch / "other/config.toml", "task = \"lm\"\n");
  options.folder = scratch / "other";
  CHECK_THROWS_WITH(trained(options), containing("this is a run of the task lm, not of fit()"));
  options.folder = scratch / "run";
  trained(options);
  io::remove_all(options.folder / "ckpt");
  CHECK(fault_of([&] { trained(options); }) == Fault::data);
  CHECK_THROWS_WITH(trained(options), containing("has lost its checkpoints") &&
                                          containing("name another folder") && !containing("--"));
}

TEST_CASE("fit: where memory runs out, the advice names what a program sets") {
  Net net(5);
  DataLoader loader(training(), {.batch_size = 16, .prefetch = 0});
  const auto large = [](Net& model, const Batch& batch, const ForwardContext& context) {
    const Tensor more = Tensor::zeros(Shape{1 << 20});
    return loss(model, batch, context).loss + mean(more);
  };
  release_cached();
  cap_memory(memory_use().reserved + (1 << 20));
  std::string said;
  try {
    fit(net, loader, large, quick());
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::memory);
    said = error.what();
  }
  cap_memory(0);
  CHECK_THAT(said, containing("Try DataLoaderOptions::batch_size = 8 (now 16) with "
                              "FitOptions::grad_accumulation = 2, or a greater cap_memory()") &&
                       !containing("--"));
}

TEST_CASE("fit: fast_dev_run takes two steps with all that belongs to them, and leaves nothing") {
  const Scratch scratch;
  Net net(5);
  DataLoader loader(training(), {.batch_size = 16}), validation(held_out(), {.batch_size = 50});
  Counting counting;
  FitOptions options = quick(100);
  options.validation = &validation;
  options.patience = 1;
  options.folder = scratch / "run";
  options.callbacks = {&counting};
  options.fast_dev_run = true;
  CHECK(fit(net, loader, loss, options).step == 2);
  CHECK(counting.steps == 2);
  CHECK(counting.validations == 2);
  CHECK(counting.saves == 2);
  CHECK(!io::exists(scratch / "run"));
  {
    const TemporaryParent parent(scratch / "missing");
    CHECK_THROWS_WITH(fit(net, loader, loss, options),
                      containing("/missing: No such file") && containing("Set TMPDIR"));
  }
  const TemporaryParent parent(scratch.path());
  fit(net, loader, loss, options);
  CHECK(io::list(scratch.path()).empty());
}

TEST_CASE("fit: overfit_batches learns its batches by heart, without dropout") {
  Net net(5);
  DataLoader loader(training(), {.batch_size = 8, .shuffle = true});
  FitOptions options{.steps = 600};
  options.schedule.learning_rate = 2e-2;
  options.quiet = true;
  options.overfit_batches = 2;
  fit(net, loader, loss, options);
  CHECK(loader.position() == LoaderPosition{});
  for (int64_t batch = 0; batch < 2; ++batch) CHECK(loss(net, loader.at({0, batch}), {}).loss.item() < 0.1);
  CHECK(loss(net, loader.at({0, 2}), {}).loss.item() > loss(net, loader.at({0, 0}), {}).loss.item());
  options.overfit_batches = 1000;
  CHECK_THROWS_WITH(fit(net, loader, loss, options), containing("an epoch has 25 batches"));
}
