// Pre-training on tokens: which are hidden, which weights are kept, and a two-stage run interrupted in
// either.
#include "heed/train/loop/pretraining.h"

#include <csignal>
#include <thread>

#include "heed/core/io/safetensors.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/tests/train/shell.h"
#include "heed/tests/train/small_presets.h"
#include "heed/tests/train/small_run.h"
#include "heed/train/config/config.h"
#include "heed/train/tasks/lra/lra.h"
#include "heed/train/tasks/lra/token_prediction.h"

using namespace heed;

namespace {

/// Three inputs of 40, 7 and 1 tokens, whose ids are 100 and on.
struct Inputs {
  explicit Inputs(std::vector<int64_t> own = {40, 7, 1}, std::vector<int64_t> named = {4, 9, 2}) {
    const int64_t columns = *std::max_element(own.begin(), own.end());
    for (size_t i = 0; i < own.size(); ++i) {
      for (int64_t t = 0; t < columns; ++t) ids.push_back(t < own[i] ? static_cast<int32_t>(100 + t) : 0);
    }
    rows = {.ids = ids, .columns = columns, .lengths = std::move(own), .names = std::move(named)};
  }
  std::vector<int32_t> ids;
  TokenRows rows;
};

/// The command of a tiny ListOps run of some seconds: 12 steps of pre-training, 8 of classification.
std::vector<std::string> two_stages(const std::string& name, const std::vector<std::string>& more = {}) {
  std::vector<std::string> out = command_words(
      "train lra-listops --quiet --d-model 16 --heads 2 --d-ff 16 --data.num_examples 400 "
      "--data.test_size 40 --data.validation 40 --train.batch_size 8 --dropout 0.1 --steps 8 "
      "--train.validate_every 4 --pretrain-steps 12 --train.keep_checkpoints 100 --name " +
      name);
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

/// The last value of a metric; -1 where the log has none.
double last_of(const Path& run, const std::string& name) {
  for (const MetricSeries& series : read_metrics(run / "metrics.jsonl")) {
    if (series.name == name) return series.values.back();
  }
  return -1;
}

/// The usage error of these settings.
std::string message_of(const std::string& preset, const Settings& settings) {
  try {
    Config config = make_config(preset);
    for (const auto& [key, value] : settings) config.set(key, value, "");
    config.check();
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::usage);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("pretraining: a share of each input is hidden and asked for, drawn by counters") {
  Inputs inputs;
  const std::vector<int32_t> before = inputs.ids;
  const Hiding half{.share = 0.5, .hidden = 7, .seed = 3, .drawn = 1};
  const AskedTokens asked = hide_tokens(inputs.rows, half);
  REQUIRE(asked.rows.size() == 20 + 4 + 1);
  std::set<int32_t> places;
  for (size_t i = 0; i < asked.rows.size(); ++i) {
    const auto row = static_cast<size_t>(asked.rows[i]);
    if (i > 0) CHECK(asked.rows[i] > asked.rows[i - 1]);
    CHECK(asked.tokens[i] == before[row]);
    CHECK(asked.tokens[i] >= 100);
    places.insert(asked.rows[i]);
  }
  for (size_t row = 0; row < before.size(); ++row)
    CHECK(inputs.ids[row] == (places.contains(static_cast<int32_t>(row)) ? 7 : before[row]));
  // Half of the tokens and not the first half.
  CHECK(*places.begin() < 20);
  CHECK(asked.rows[19] >= 25);
  const auto rows_of = [](Inputs other, const Hiding& hiding) {
    return hide_tokens(other.rows, hiding).rows;
  };
  CHECK(rows_of(Inputs(), half) == asked.rows);
  Hiding next = half;
  next.drawn = 2;
  CHECK(rows_of(Inputs(), next) != asked.rows);
  next = half;
  next.seed = 4;
  CHECK(rows_of(Inputs(), next) != asked.rows);
  // An input hides the same tokens in whatever batch it stands, and another one others.
  const std::vector<int32_t> alone = rows_of(Inputs({40}, {4}), half);
  CHECK(std::equal(alone.begin(), alone.end(), asked.rows.begin()));
  CHECK(rows_of(Inputs({40}, {5}), half) != alone);
  CHECK(rows_of(Inputs({40}, {4}), {.share = 0.001, .hidden = 7}).size() == 1);
}

TEST_CASE("pretraining: the same tokens are hidden with any number of threads") {
  const int threads_before = threads();
  std::vector<int64_t> lengths, names;
  for (int64_t i = 0; i < 97; ++i) {
    lengths.push_back(1 + i * 13 % 61);
    names.push_back(i);
  }
  std::vector<std::vector<int32_t>> found;
  for (const int count : {1, 2, 3, 8}) {
    set_threads(count);
    Inputs inputs(lengths, names);
    const AskedTokens asked = hide_tokens(inputs.rows, {.share = 0.3, .hidden = 1, .seed = 5, .drawn = 9});
    found.push_back(asked.rows);
    found.back().insert(found.back().end(), asked.tokens.begin(), asked.tokens.end());
    found.back().insert(found.back().end(), inputs.ids.begin(), inputs.ids.end());
    CHECK(found.back() == found.front());
  }
  set_threads(threads_before);
}

TEST_CASE("pretraining: each token is asked for the one behind it") {
  Inputs inputs({3, 1, 2}, {0, 1, 2});
  const AskedTokens asked = next_tokens(inputs.rows);
  CHECK(asked.rows == std::vector<int32_t>{0, 1, 6});
  CHECK(asked.tokens == std::vector<int32_t>{101, 102, 101});
  CHECK(asked_of_each(Tensor::of<int32_t>(asked.rows, Shape{3}), 3, 3) == std::vector<int64_t>{2, 0, 1});
  Inputs single({1, 1}, {0, 1});
  CHECK(next_tokens(single.rows).tokens == std::vector<int32_t>{100});
}

TEST_CASE("pretraining: batches of every task over long sequences ask for tokens") {
  for (const Preset& preset : presets()) {
    if (!std::string(preset.task).starts_with("lra-")) continue;
    CAPTURE(preset.name);
    for (const char* objective : {"masked", "causal"}) {
      Config config = small_preset(preset.name);
      config.set("data.predict", objective, "");
      config.task->load(config, {}, [](const std::string&) {});
      config.task->plan(0);
      const Batch batch = config.task->batch(0);
      CHECK(config.task->tensor_names().back() == "rows");
      REQUIRE(config.task->tensor_names().size() == batch.tensors.size());
      CHECK(batch.weight == static_cast<double>(batch.tensors.back().size()));
      CHECK(batch.tensors[1].size() == batch.tensors.back().size());
      Rng rng(1), noise(2);
      const auto model = new_model(config, rng);
      const Tensor loss = config.task->loss(*model, batch, {.rng = &noise});
      CHECK_NOTHROW(check_listed(*model, loss));
      const Scores scores = config.task->validate(*model);
      CHECK(scores.list[0].first == "loss");
      CHECK(scores.lower_is_better);
      CHECK(config.task->validate(*model).list ==
            scores.list);  // the hidden tokens are those of the first time
    }
  }
}

TEST_CASE("pretraining: attention with rewards is told how likely the tokens of each input were") {
  Config config = small_preset("lra-listops", 2, {{"data.num_examples", 40}});
  config.set("data.predict", "masked", "");
  config.set("attention.encoder", "hard", "");
  config.task->load(config, {}, [](const std::string&) {});
  config.task->plan(0);
  Rng rng(1), noise(2);
  const auto model = new_model(config, rng);
  AuxiliaryLosses terms;
  config.task->loss(*model, config.task->batch(0), {.rng = &noise, .losses = &terms});
  CHECK(terms.waiting.empty());
  CHECK(std::isfinite(terms.sum().item()));
}

TEST_CASE("pretraining: one command learns tokens, then classes from what it read with, and says so") {
  const Shell shell;
  for (const char* objective : {"masked", "causal"}) {
    CAPTURE(objective);
    const Result result = shell.run(two_stages(objective, {"--pretrain", objective}));
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
    const Path run = shell.scratch / "runs" / objective;
    REQUIRE(pretrained(run));
    Config config = read_config(io::read(run / "config.toml"), "config");
    CHECK(config.train.pretrain == (objective[0] == 'c' ? Pretrain::causal : Pretrain::masked));
    CHECK(config.train.pretrain_steps == 12);
    Config before = read_config(io::read(run / "pretrain" / "config.toml"), "config");
    CHECK(before.train.max_steps == 12);
    CHECK(before.train.pretrain == Pretrain::none);
    CHECK_THAT(to_toml(before), containing("predict = \"" + std::string(objective) + "\""));
    const Json manifest = parse_json(io::read(run / "manifest.json"), "manifest");
    CHECK(manifest.at("pretraining").at("objective").text() == objective);
    CHECK(manifest.at("pretraining").at("steps_taken").integer() == 12);
    CHECK(manifest.at("pretraining").at("seconds").real() > 0);
    const std::string report = io::read(run / "report.html");
    CHECK_THAT(report, containing("Loss of pre-training") && containing("12 steps"));
    CHECK_THAT(io::read(run / "pretrain" / "report.html"), containing("Loss"));
    // A trainer that begins the second stage anew has the weights that the first one kept, and a head of its
    // own.
    config.task->load(config, {}, [](const std::string&) {});
    Rng rng(static_cast<uint64_t>(config.train.seed));
    const auto fresh = new_model(config, rng);
    io::remove_all(run / "ckpt");
    RunFolder folder = RunFolder::resume(run, "test");
    Progress progress;
    progress.quiet = true;
    Trainer trainer(config, folder, std::nullopt, progress);
    const SafeTensors kept =
        SafeTensors::parse(open_checkpoint(run / "pretrain", "best").file("model.safetensors"), "model");
    std::map<std::string, std::vector<float>> head;
    for (const Named& named : tensors(*fresh)) head[named.name] = named.tensor->to_host();
    int64_t taken = 0;
    for (const Named& named : tensors(trainer.model())) {
      CAPTURE(named.name);
      if (kept.find(named.name) == nullptr) {
        CHECK(named.tensor->to_host() == head.at(named.name));
        continue;
      }
      ++taken;
      CHECK(named.tensor->to_host() == kept.array(named.name).values<float>());
    }
    CHECK(taken == 2 + 2 * 12 + 2);
  }
}

TEST_CASE("pretraining: killed or stopped in either stage, it goes on to the same bits") {
  const Shell shell;
  const std::vector<std::string> masked{"--pretrain", "masked", "--train.checkpoint_every", "3"};
  REQUIRE(shell.run(two_stages("whole", masked)).code == 0);
  const Path whole = shell.scratch / "runs" / "whole", stopped = shell.scratch / "runs" / "stopped";
  // Each session is ended once the log of a stage has some lines; with 3 steps a checkpoint, in the middle.
  const auto lines = [](const Path& log) {
    const std::string all = io::exists(log) ? io::read(log) : std::string();
    return std::count(all.begin(), all.end(), '\n');
  };
  const auto session = [&](const std::vector<std::string>& words, const Path& log, int64_t least,
                           int signal) {
    const pid_t child = shell.start(words);
    for (int i = 0; i < 20000 && lines(log) < least; ++i) {
      if (::waitpid(child, nullptr, WNOHANG | WNOWAIT) == child) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ::kill(child, signal);
    return shell.end(child).code;
  };
  const std::vector<std::string> resume{"resume", "runs/stopped", "--quiet", "--threads", "3"};
  std::set<int> codes;
  codes.insert(session(two_stages("stopped", masked), stopped / "pretrain" / "metrics.jsonl", 4, SIGKILL));
  codes.insert(session(resume, stopped / "pretrain" / "metrics.jsonl", 7, SIGTERM));
  codes.insert(session(resume, stopped / "metrics.jsonl", 2, SIGKILL));
  codes.insert(session(resume, stopped / "metrics.jsonl", 5, SIGTERM));
  CHECK((codes.contains(-SIGKILL) || codes.contains(128 + SIGTERM)));  // or nothing was interrupted
  const Result result = shell.run(resume);
  CAPTURE(result.err);
  CHECK(result.code == 0);
  check_same(whole / "pretrain", stopped / "pretrain", 12);
  check_same(whole, stopped, 8);
  const Json one = parse_json(io::read(whole / "scores.json"), "scores");
  CHECK(parse_json(io::read(stopped / "scores.json"), "scores").dump() == one.dump());
  // What is done is not done again.
  const std::string log = io::read(stopped / "pretrain" / "metrics.jsonl");
  CHECK(shell.run({"resume", "runs/stopped", "--steps", "10", "--quiet"}).code == 0);
  CHECK(io::read(stopped / "pretrain" / "metrics.jsonl") == log);
}

TEST_CASE("pretraining: the same bits with any number of threads") {
  const Shell shell;
  for (const char* count : {"1", "4"})
    REQUIRE(shell.run(two_stages(count, {"--pretrain", "masked", "--threads", count})).code == 0);
  const Path runs = shell.scratch / "runs";
  check_same(runs / "1" / "pretrain", runs / "4" / "pretrain", 12);
  check_same(runs / "1", runs / "4", 8);
}

TEST_CASE("pretraining: hidden tokens of pairs of brackets are learned") {
  const Shell shell;
  // ListOps knows its brackets: frequencies alone tell 2.4 nats, the syntax more.
  for (const char* objective : {"masked", "causal"}) {
    CAPTURE(objective);
    const std::string command =
        "train lra-listops --quiet --steps 150 --data.num_examples 4000 --data.validation 200 "
        "--data.test_size 200 --train.batch_size 64 --layers 1 --lr 3e-3 --warmup-steps 20";
    REQUIRE(shell.run(command_words(text(command, " --name ", objective, " --predict ", objective))).code ==
            0);
    const Path run = shell.scratch / "runs" / objective;
    const double first = read_metrics(run / "metrics.jsonl").front().values.front();
    const double last = last_of(run, "valid_loss");
    CAPTURE(first, last);
    CHECK(last < first - 0.5);
    const std::string known = parse_json(io::read(run / "manifest.json"), "manifest").at("baselines").text();
    const std::string words = "frequencies of tokens ";
    REQUIRE(known.starts_with(words));
    CHECK(last < std::stod(known.substr(words.size())) - 0.1);
  }
}

TEST_CASE("pretraining: what it takes is estimated with the rest") {
  const Shell shell;
  std::vector<std::string> words = two_stages("x", {"--pretrain", "masked", "--dry-run"});
  std::erase(words, "--quiet");
  CHECK_THAT(shell.run(words).out, containing("# pre-training before that, about") && containing("12 steps"));
  words.emplace_back("--json");
  const Json both = parse_json(shell.run(words).out, "estimate");
  CHECK(both.at("seconds_of_steps").real() > both.at("pretraining").at("seconds_of_steps").real());
}

TEST_CASE(
    "pretraining: a run that fails before its first step leaves nothing, a later one what it has learned") {
  const Shell shell;
  CHECK(shell.run(two_stages("gone", {"--pretrain", "masked", "--data", "absent"})).code ==
        static_cast<int>(Fault::file));
  CHECK(!io::exists(shell.scratch / "runs" / "gone"));
  CHECK(shell.run(two_stages("kept", {"--pretrain", "masked", "--lr", "1e38", "--warmup-steps", "8"})).code ==
        static_cast<int>(Fault::numeric));
  CHECK(io::exists(shell.scratch / "runs" / "kept" / "config.toml"));
}

TEST_CASE("pretraining: a checkpoint before the first line of its metrics is something to keep") {
  const Scratch scratch;
  CHECK(!pretraining_begun(scratch.path()));
  write_checkpoint(pretraining_folder(scratch.path()), 2, {{"state.json", "{}"}});
  CHECK(pretraining_begun(scratch.path()));
}

TEST_CASE("pretraining: what cannot be is refused with what can") {
  const Settings masked{{"train.pretrain", "masked"}, {"train.pretrain_steps", "5"}};
  CHECK(message_of("lra-text", masked) == "no error");
  CHECK_THAT(message_of("lra-text", {{"train.pretrain", "mask"}}),
             containing("none") && containing("masked") && containing("causal"));
  CHECK_THAT(message_of("lra-text", {{"train.pretrain", "masked"}}), containing("--pretrain-steps N"));
  CHECK_THAT(message_of("lra-text", {{"train.pretrain_steps", "5"}}),
             containing("train.pretrain_steps = 5") && containing("--pretrain masked"));
  CHECK_THAT(message_of("lra-text", {{"train.pretrain", "masked"}, {"train.pretrain_steps", "-1"}}),
             containing("train.pretrain_steps = -1"));
  CHECK_THAT(message_of("mnist", masked), containing("the task mnist") && containing("lra-listops"));
  Settings twice = masked;
  twice.emplace_back("data.predict", "causal");
  CHECK_THAT(message_of("lra-text", twice), containing("data.predict"));
  Settings back{
      {"train.pretrain", "causal"}, {"train.pretrain_steps", "5"}, {"attention.encoder", "linformer"}};
  CHECK_THAT(message_of("lra-text", back),
             containing("linformer mixes later keys in") && containing("--pretrain masked"));
  back[0].second = "masked";
  CHECK(message_of("lra-text", back) == "no error");
  Config config = small_preset("lra-text");
  config.set("data.hidden_share", "1", "");
  CHECK_THROWS_WITH(config.task->load(config, {}, [](const std::string&) {}),
                    containing("data.hidden_share = 1") && containing("0.15"));
}
