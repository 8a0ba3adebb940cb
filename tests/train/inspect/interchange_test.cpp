// How models recall: verdicts on effects, what must hold for every model, and the command.
#include "heed/train/inspect/interchange.h"

#include "heed/core/io/json.h"
#include "heed/tests/train/shell.h"
#include "heed/train/config/config.h"

using namespace heed;

namespace {

/// A report of two blocks in which these states decide at these places.
InterchangeReport report_of(const std::vector<std::tuple<StateKind, int64_t, ExchangePlace>>& deciding) {
  InterchangeReport report{.examples = 10, .used = 10, .layers = 2};
  for (const auto& [kind, layer, place] : deciding)
    report.effects.push_back({.site = {kind, layer}, .place = place, .other = 0.9});
  return report;
}

constexpr auto stream = StateKind::stream, input = StateKind::input;
constexpr auto key = ExchangePlace::key, value = ExchangePlace::value, question = ExchangePlace::question;

const std::string tiny_mqar =
    "train mqar --vocabulary 32 --length 16 --kv-pairs 2 --d-model 32 --max-length 16 --epochs 0 "
    "--batch-size 64 --validation 50 --test-size 100 --quiet --threads 1 ";

}  // namespace

TEST_CASE("interchange: the state that the answering block reads tells the mechanism") {
  CHECK(mechanism_of(report_of({{stream, 0, key}, {stream, 1, value}, {stream, 2, question}})) ==
        RecallMechanism::induction);
  CHECK(mechanism_of(report_of({{stream, 0, key}, {stream, 1, key}, {stream, 2, question}})) ==
        RecallMechanism::lookup);
  CHECK(mechanism_of(report_of({{stream, 1, key}, {input, 1, value}, {stream, 2, question}})) ==
        RecallMechanism::convolution);
  CHECK(mechanism_of(
            report_of({{stream, 1, key}, {input, 1, value}, {input, 1, key}, {stream, 2, question}})) ==
        RecallMechanism::lookup);
  // The first block answers.
  CHECK(mechanism_of(report_of({{stream, 0, key}, {stream, 1, question}, {stream, 2, question}})) ==
        RecallMechanism::lookup);
  CHECK(mechanism_of(report_of({{stream, 2, question}})) == RecallMechanism::neither);
  CHECK(mechanism_of(report_of({{stream, 1, key}, {stream, 1, value}, {stream, 2, question}})) ==
        RecallMechanism::neither);
  CHECK(mechanism_of({}) == RecallMechanism::neither);
}

TEST_CASE("interchange: tasks without keys and values are refused") {
  for (const std::string preset : {"recall", "mad-copy", "mad-fuzzy", "mad-memorize", "induction"}) {
    CAPTURE(preset);
    Config config = make_config(preset);
    config.task->load(config, {}, [](const std::string&) {});
    Rng rng(1);
    const auto model = new_model(config, rng);
    CHECK_THROWS_WITH(interchange(*config.task, *model, 5), containing("Take a run of mqar"));
  }
}

TEST_CASE(
    "interchange: trained softmax does induction, with a short convolution within the layer that answers",
    "[slow]") {
  const Shell shell;
  REQUIRE(shell.run(command_words(tiny_mqar + "--max-steps 1500 --lr 3e-3 --name plain")).code == 0);
  REQUIRE(
      shell
          .run(command_words(tiny_mqar + "--max-steps 400 --lr 1e-2 --position none --short-convolution 2 "
                                         "--name taps"))
          .code == 0);
  const Result both =
      shell.run(command_words("interchange runs/plain runs/taps --examples 60 --json --threads 1"));
  CAPTURE(both.err);
  REQUIRE(both.code == 0);
  const Json reports = parse_json(both.out, "interchange");
  REQUIRE(reports.list().size() == 2);
  for (const Json& report : reports.list()) {
    CHECK(report.at("examples").integer() == 60);
    REQUIRE(report.at("used").integer() > 25);
    for (const Json& effect : report.at("effects").list()) {
      const double other = effect.at("other").real(), own = effect.at("own").real();
      CAPTURE(effect.dump());
      CHECK(other + own <= 1 + 1e-12);
      const std::string place = effect.at("place").text();
      if (effect.at("state").text() != "stream") continue;
      if (effect.at("layer").integer() == 0) {  // embeddings: keys differ, values and questions do not
        CHECK(other == (place == "key" ? 1 : 0));
        CHECK(own == (place == "key" ? 0 : 1));
      }
      if (effect.at("layer").integer() == 2) {
        CHECK(other == (place == "question" ? 1 : 0));
        CHECK(own == (place == "question" ? 0 : 1));
      }
    }
  }
  CHECK(reports.list()[0].at("mechanism").text() == "induction");
  CHECK(reports.list()[1].at("mechanism").text() == "convolution");
  const Result one = shell.run({"interchange", "runs/plain", "--examples", "20", "--threads", "1"});
  CHECK_THAT(one.out, containing("mechanism: ") && containing("stream") && containing("question"));
  const Result table = shell.run(command_words("interchange runs/plain runs/taps --examples 20 --threads 1"));
  CHECK_THAT(table.out, containing("mechanism") && containing("taps"));
}
