// Baselines: next to their task's scores, and wherever a run shows an accuracy.
#include "heed/train/metrics/baseline_scores.h"

#include "heed/core/io/files.h"
#include "heed/tests/train/shell.h"
#include "heed/tests/train/small_presets.h"
#include "heed/train/tasks/task.h"

using namespace heed;

namespace {

const std::vector<std::string> small{"--d-model",
                                     "16",
                                     "--heads",
                                     "2",
                                     "--d-ff",
                                     "16",
                                     "--steps",
                                     "4",
                                     "--train.batch_size",
                                     "8",
                                     "--data.num_examples",
                                     "200",
                                     "--data.test_size",
                                     "40",
                                     "--data.validation",
                                     "20"};

Json known_of(Config config) {
  config.task->load(config, {}, [](const std::string&) {});
  Json out = Json::object();
  set_baselines(out, config.task->baselines());
  return out;
}

}  // namespace

TEST_CASE("known: every class task of long inputs knows accuracies, tokens have a loss too, others nothing") {
  for (const char* preset : {"lra-listops", "lra-text", "lra-retrieval", "lra-image", "lra-pathfinder"}) {
    CAPTURE(preset);
    const Json known = known_of(small_preset(preset)).at("baselines");
    CHECK(known.find("loss") == nullptr);
    CHECK(known.at("accuracy").members().size() >= 2);
    const double majority = known.at("accuracy").at("majority").real();
    CHECK((majority >= 0 && majority <= 1));
  }
  Config masked = small_preset("lra-listops");
  masked.set("data.predict", "masked", "");
  const Json tokens = known_of(std::move(masked)).at("baselines");
  CHECK(tokens.at("loss").at("frequencies of tokens").real() > 1);
  CHECK(tokens.at("accuracy").at("the commonest token").real() < 1);
  CHECK(known_of(small_preset("recall")).members().empty());
}

TEST_CASE("known: words are of one score") {
  Config config = small_preset("lra-listops");
  config.task->load(config, {}, [](const std::string&) {});
  const std::vector<std::string> words = baseline_words(config.task->baselines(), "accuracy");
  REQUIRE(words.size() >= 2);
  CHECK(words[0].starts_with("majority 0."));
  CHECK(words[1].starts_with("root operator 0."));
  CHECK(baseline_words(config.task->baselines(), "loss").empty());
}

TEST_CASE("known: a run shows it at its end, in report, scores and evaluation, and so does a comparison") {
  const Shell shell;
  std::vector<std::string> words{"train", "lra-listops", "--name", "a"};
  words.insert(words.end(), small.begin(), small.end());
  const Result trained = shell.run(words);
  CAPTURE(trained.err);
  REQUIRE(trained.code == 0);
  const Path run = shell.scratch / "runs" / "a";
  const std::string said = parse_json(io::read(run / "manifest.json"), "manifest").at("baselines").text();
  REQUIRE(said.starts_with("majority 0."));

  const size_t best = trained.err.find("\n  best ");
  REQUIRE(best != std::string::npos);
  CHECK_THAT(trained.err.substr(best + 1, trained.err.find('\n', best + 1) - best), containing(said));
  CHECK_THAT(io::read(run / "report.html"), containing("baselines:</dd><dd class=\"note\">majority 0.") &&
                                                containing("<dd class=\"note\">root operator 0."));
  const Json kept = parse_json(io::read(run / "scores.json"), "scores").at("baselines");
  CHECK(kept.at("accuracy").at("root operator and its digits").real() > 0);
  const Result scored = shell.run({"evaluate", "runs/a", "--json"});
  CHECK(parse_json(scored.out, "scores").at("baselines").dump() == kept.dump());

  const Result compared = shell.run({"compare", "runs/a", "--name", "c"});
  CHECK(compared.code == 0);
  CHECK_THAT(unwrapped(compared.out, "  "), containing("\nbaselines: " + said + "\n"));
  for (const char* file : {"compare.html", "compare.csv"})
    CHECK_THAT(io::read(shell.scratch / "runs" / "c" / file), containing(said));
}
