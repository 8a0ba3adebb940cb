// Circuits: the command on language models and on sequences of keys and values, and estimates against exact
// effects on a trained model.
#include "heed/train/inspect/circuit.h"

#include <cmath>

#include "heed/tests/train/shell.h"
#include "heed/train/metrics/rank_correlation.h"

using namespace heed;

namespace {

const std::string small_lm =
    "train lm --name verse --num-examples 6000 --d-model 16 --heads 2 --d-ff 16 --layers 2 --max-length 16 "
    "--steps 3 --batch-size 4 --quiet --threads 1";

const std::string small_mqar =
    "train mqar --vocabulary 32 --length 16 --kv-pairs 2 --d-model 32 --max-length 16 --epochs 0 "
    "--batch-size 64 --validation 50 --test-size 100 --quiet --threads 1 ";

/// The numbers of all edges under a key.
std::vector<double> of_edges(const Json& report, const std::string& key) {
  std::vector<double> out;
  for (const Json& edge : report.at("edges").list()) out.push_back(edge.at(key).real());
  return out;
}

}  // namespace

TEST_CASE("circuit: all edges of a language model between two texts, the strongest first") {
  const Shell shell;
  REQUIRE(shell.run(command_words(small_lm)).code == 0);
  const std::vector<std::string> asked{"circuit",     "runs/verse", "--clean",   "the sun",
                                       "--corrupted", "the sea",    "--answer",  "s",
                                       "--wrong",     "a",          "--threads", "1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), asked.begin(), asked.end());
    return shell.run(more);
  };
  const Result exact = with({"--exact", "--json"});
  CAPTURE(exact.err);
  REQUIRE(exact.code == 0);
  const Json report = parse_json(exact.out, "circuit");
  // Inputs of block 0 read the embedding: 6 of heads, and its network 3 senders; of block 1 four senders
  // each, its network 6; the logits 7.
  const std::vector<double> scores = of_edges(report, "score"), effects = of_edges(report, "exact");
  CHECK(scores.size() == 6 + 3 + 6 * 4 + 6 + 7);
  CHECK(report.at("correlation").real() == Approx(rank_correlation(scores, effects)));
  for (size_t i = 1; i < effects.size(); ++i) CHECK(std::abs(effects[i]) <= std::abs(effects[i - 1]));
  CHECK(report.at("clean").real() != report.at("corrupted").real());

  const Result plain = with({"--json"});
  const std::vector<double> sorted = of_edges(parse_json(plain.out, "circuit"), "score");
  CHECK(sorted.size() == scores.size());
  for (size_t i = 1; i < sorted.size(); ++i) CHECK(std::abs(sorted[i]) <= std::abs(sorted[i - 1]));
  CHECK_THAT(plain.out, !containing("exact"));

  const Result table = with({"--exact", "--top", "3"});
  CHECK_THAT(table.out, containing("3 of 46 edges, 1 pair, steps 5") && containing("rank correlation"));
  std::istringstream lines(table.out);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
  // Without --answer, the answers are what the model predicts; one text has one answer.
  check_refused(shell, command_words("circuit runs/verse --clean abc --corrupted abc"), 2,
                {"Give two tokens by --answer and --wrong"});
}

TEST_CASE("circuit: what does not fit is refused with what to do") {
  const Shell shell;
  REQUIRE(shell.run(command_words(small_lm)).code == 0);
  const auto refused = [&](const std::string& words, const std::string& message) {
    check_refused(shell, command_words("circuit runs/verse " + words), 2, {message});
  };
  refused("", "Give --clean TEXT and --corrupted TEXT");
  refused("--clean abc", "--clean and --corrupted go together");
  refused("--clean abc --corrupted ab", "--clean has 3 tokens and --corrupted 2");
  refused("--clean abc --corrupted abd --answer xy --wrong a", "--answer 'xy' is 2 tokens: 'x', 'y'");
  refused("--clean abc --corrupted abd --answer a --wrong a", "Give two tokens");
  refused("--clean abc --corrupted abd --position 3", "--position");
  refused("--clean abc --corrupted abd --examples 3", "--examples counts test sequences");
  refused("--clean abcdefghabcdefghi --corrupted abcdefghabcdefghd", "has 17 tokens, and the model reads 16");
  refused("--answer a", "--answer is for --clean and --corrupted");
  refused("--clean abc --corrupted abd --steps 0", "--steps");
  REQUIRE(shell.run(command_words(small_mqar + "--steps 1 --name keys")).code == 0);
  check_refused(shell, command_words("circuit runs/keys --clean a --corrupted b"), 2,
                {"this is one of the task mqar"});
}

TEST_CASE("circuit: integrated gradients come nearer to exact effects on trained recall", "[slow]") {
  const Shell shell;
  REQUIRE(shell.run(command_words(small_mqar + "--max-steps 1500 --lr 3e-3 --name plain")).code == 0);
  const auto report_of = [&](const std::string& options) {
    const Result result =
        shell.run(command_words("circuit runs/plain --examples 5 --exact --json --threads 1 " + options));
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
    return parse_json(result.out, "circuit");
  };
  const Json plain = report_of("--steps 1"), integrated = report_of("--steps 10");
  CHECK(integrated.at("pairs").integer() > 0);
  CHECK(integrated.at("clean").real() > 1);
  CHECK(integrated.at("corrupted").real() < -1);
  CHECK(integrated.at("correlation").real() > 0.65);
  CHECK(integrated.at("correlation").real() > plain.at("correlation").real());
}
