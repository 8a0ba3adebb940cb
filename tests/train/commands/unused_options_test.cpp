// Commands reject options that they do not use.
#include "heed/core/io/files.h"
#include "heed/tests/catch.h"
#include "heed/tests/train/shell.h"

using namespace heed;

namespace {

const std::vector<std::string> small{"train", "recall",    "--quiet", "--d-model", "16", "--heads",
                                     "2",     "--layers",  "1",       "--steps",   "2",  "--batch-size",
                                     "4",     "--threads", "1"};

/// The program with a variable of the environment.
Shell with_variable(const std::string& variable) {
  return Shell{.scratch = Scratch(), .before = {"env", variable}};
}

}  // namespace

TEST_CASE("ignored: options that do not go with a run, or with a part of the bench, are refused") {
  const Shell shell;
  REQUIRE(shell.run(with(small, {"--name", "a"})).code == 0);
  const std::string why = "does not go with a run, whose settings are given. Give runs/a/config.toml";
  check_refused(shell, {"show", "runs/a", "--lr", "abc"}, 2, {"show: --lr", why});
  check_refused(shell, {"show", "runs/a", "--recipe", "nonsense"}, 2, {"show: --recipe", why});
  check_refused(shell, {"show", "runs/a", "--origin"}, 2, {"show: --origin", why});
  check_refused(shell, {"show", "recall", "--checkpoint", "7"}, 2, {"--checkpoint", "recall is none"});
  CHECK(shell.run({"show", "runs/a", "--checkpoint", "last", "--model"}).code == 0);
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--lr", "abc"}, {"--seeds", "0"}, {"--recipe", "x"}, {"--jobs", "2"}}) {
    check_refused(shell, with({"compare", "runs/a", "runs/a"}, more), 2,
                  {"compare: " + more[0] + " does not go with finished runs"});
  }
  for (const char* command : {"evaluate", "heads", "ablate", "resume"})
    check_refused(shell, {command, "runs/a", "--data", "x"}, 2, {"--data: this task makes its own data"});
  check_refused(shell, {"evaluate", "runs/a", "--stride", "3"}, 2,
                {"--stride: this task has no data.stride"});
  const Result outputs = shell.run({"ablate", "runs/a", "--outputs", "3"});  // refused when the data are read
  CHECK(outputs.code == 2);
  CHECK_THAT(outputs.err, containing("--outputs = 3 is of translators"));
  check_refused(shell, {"ablate", "runs/a", "--data", "x", "--test-path", "x"}, 2, {"mean the same here"});
  CHECK(shell.run({"compare", "runs/a", "--name", "c", "--quiet", "--threads", "1"}).code == 0);
  const std::vector<std::string> machine{"--json, --threads, --device, --memory"};
  check_refused(shell, {"bench", "gemm", "--lr", "5"}, 2, with({"bench gemm: --lr does not go"}, machine));
  check_refused(shell, {"bench", "gemm", "--longest", "4x"}, 2,
                {"bench gemm: --longest does not go with it"});
  check_refused(shell, {"bench", "dropout", "--width", "64"}, 2, {"option --width is unknown. "});
  check_refused(shell, {"bench", "train", "--width", "64"}, 2, {"option --width is called --d-model now."});
  check_refused(shell, {"bench", "ops", "--out", "x"}, 2, {"bench ops: --out"});
  check_refused(shell, {"bench", "limits", "--rounds", "2"}, 2, {"bench limits: --rounds"});
  check_refused(shell, {"bench", "attention", "linear", "--batch-size", "2"}, 2,
                {"bench attention: --batch-size"});
  check_refused(shell, {"bench", "decode", "baby", "--rounds", "2"}, 2,
                {"--rounds", "the settings of a run"});
  check_refused(shell, {"bench", "decode", "nosuch"}, 2, {"bench decode: 'nosuch' is unknown."});
}

TEST_CASE("ignored: variables that are a slip are refused, and others are left alone") {
  check_refused(with_variable("HEED_THREADS=x"), small, 2, {"HEED_THREADS=x", "1 to 256"});
  check_refused(with_variable("HEED_THREADS=257"), small, 2, {"HEED_THREADS=257", "1 to 256"});
  check_refused(with_variable("HEED_THREADS=2 "), small, 2, {"HEED_THREADS=2 "});
  CHECK(with_variable("HEED_THREADS=").run(small).code == 0);
  check_refused(with_variable("HEED_TRAIN_LEARNING_RAT=5"), {"train", "recall"}, 2,
                {"HEED_TRAIN_LEARNING_RAT=5 is no setting of any task",
                 "Did you mean HEED_TRAIN_LEARNING_RATE?", "recall"});
  check_refused(with_variable("HEED_DATA_ITEM=5"), {"show", "recall"}, 2, {"Did you mean HEED_DATA_ITEMS?"});
  for (const char* other : {"HEED_DATA=/tmp", "HEED_DATA_NUM_EXAMPLES=300", "HEED_ISA=",
                            "HEED_EMULATED_ORDER=backward", "HEED_PRESET=x", "HEED_TRAINING=1", "HEED_=1"})
    CHECK(with_variable(other).run({"show", "recall", "--origin"}).code == 0);
}

TEST_CASE("ignored: sizes beyond sense are refused before anything is computed") {
  const Shell shell;
  check_refused(shell, {"train", "recall", "--batch-size", "999999999"}, 2,
                {"train.batch_size = 999999999", "1 to 100000"});
  const std::vector<std::string> fixed{"train", "translate", "--buckets", "false", "--fixed-length"};
  check_refused(shell, with(fixed, {"999999999"}), 2,
                {"data.fixed_length = 999999999", "model.max_length = "});
  check_refused(shell, with(fixed, {"33", "--max-length", "32"}), 2, {"at most model.max_length = 32"});
  check_refused(shell, with(fixed, {"-7"}), 2, {"data.fixed_length = -7"});
  check_refused(shell, {"train", "translate", "--bleu-pairs", "-3"}, 2, {"data.bleu_pairs = -3"});
  for (const std::string task : {"translate", "lm"})  // though their tokenizers have no use for it
    check_refused(shell, {"train", task, "--vocabulary", "-1"}, 2, {"data.vocabulary = -1", "from 8 to"});
  CHECK(!io::exists(shell.scratch / "runs/translate-001"));
}
