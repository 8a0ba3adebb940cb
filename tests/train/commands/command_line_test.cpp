// The command line: commands, options, exit codes, files, and error messages.
#include <csignal>
#include <cstring>
#include <iterator>
#include <set>
#include <sstream>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/core/version.h"
#include "heed/tests/catch.h"
#include "heed/tests/train/shell.h"
#include "heed/train/commands/command.h"
#include "heed/train/config/config.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/run_folder.h"
#include "heed/train/tasks/registry.h"
#include "heed/train/tasks/task.h"

using namespace heed;

namespace {

const std::vector<std::string> small{
    "--d-model",      "16",  "--heads",           "2",   "--d-ff",           "16", "--max-length", "16",
    "--num-examples", "200", "--data.validation", "10",  "--data.test_size", "6",  "--bleu-pairs", "2",
    "--steps",        "4",   "--batch-tokens",    "200", "--validate-every", "2",  "--threads",    "2"};

}  // namespace

TEST_CASE("command line: help is true for every task, and says what is taken where nothing is given") {
  const Shell shell{.scratch = Scratch(), .before = {"env", "COLUMNS=500"}};
  const std::string help = shell.run({"train", "--help"}).out;
  for (const char* part :
       {"PRESET|FILE                 a preset (heed list presets), or a .toml file of settings",
        "--learning-rate VALUE       peak learning rate; for noam the factor before width^-0.5 [0.001]",
        "translate: TSV (plain or gzip), Moses pair, or JSON lines; empty: the embedded phrasebook\n",
        " lm, mlm: a text file; empty: embedded verse\n",
        " lra: the benchmark's files; empty: embedded data\n",
        "translate: maximum number of words per sentence; longer pairs are dropped; 0: keep all (from 0) "
        "[128]\n",
        " lra: tokens (bytes or pixels) of an input",
        "lra-pathfinder, lra-pathx: pixels a side that the model reads; those of the images or a divisor",
        "--vocabulary VALUE          translate, lm, mlm: subword pieces (8 to 1048576) [8000 in translate; "
        "8192 in lm, mlm]\n",
        "In brackets: what a setting is where"})
    CHECK_THAT(help, containing(part));
  for (const char* verb : {"attend", "bench", "compare", "data", "embed", "evaluate", "export", "generate",
                           "inspect", "list", "reproduce", "resume", "show", "translate"}) {
    const std::string its = shell.run({verb, "--help"}).out;
    CAPTURE(its);
    const size_t begin = its.find("Positionals:\n") + 13;
    std::istringstream words(its.substr(begin, its.find("\n\n", begin) - begin));
    // Its name is at most three words.
    CHECK(std::distance(std::istream_iterator<std::string>(words), {}) >= 5);
  }
  CHECK_THAT(shell.run({"evaluate", "--help"}).out, containing("lm: the text of --test-path"));
}

TEST_CASE("command line: the attentions that a model has are named, and no others") {
  const Shell shell;
  const auto said = [&](const std::string& preset) {
    return shell
        .run({"train", preset, "--steps", "1", "--d-model", "16", "--heads", "2", "--d-ff", "16", "--layers",
              "1", "--encoder", "linear", "--decoder", "window:left=3", "--threads", "1"})
        .err;
  };
  const std::string lm = said("lm"), recall = said("recall");
  CHECK_THAT(lm, containing("parameters, attention window:left=3\n"));
  CHECK_THAT(recall, containing("parameters, attention linear\n"));
}

TEST_CASE("command line: version and help answer") {
  const Shell shell;
  const Result version = shell.run({"--version"});
  CHECK(version.code == 0);
  CHECK(version.out == "heed " HEED_VERSION "\n");
  CHECK(version.err.empty());
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{}, {"--help"}, {"-h"}}) {
    const Result help = shell.run(words);
    CHECK(help.code == 0);
    for (const char* verb : {"train", "resume", "compare", "reproduce", "evaluate", "translate", "generate",
                             "inspect", "list", "show", "env", "data", "bench"}) {
      CHECK_THAT(help.out, containing(verb));
      const Result its = shell.run({verb, "--help"});
      CHECK(its.code == 0);
      CHECK_THAT(its.out, containing("--help"));
    }
  }
  CHECK_THAT(shell.run({"train", "--help"}).out, containing("--d-ff"));
  const std::string all = shell.run({"--help"}).out;
  CHECK_THAT(all, containing("heed help COMMAND"));
  CHECK(shell.run({"help"}).out == all);
  CHECK(shell.run({"help", "help"}).out == all);
  CHECK(shell.run({"help", "train"}).out == shell.run({"train", "--help"}).out);
  CHECK(shell.run({"help", "train"}).code == 0);
  check_refused(shell, {"help", "trian"}, 2, {"command 'trian' is unknown.", "Did you mean 'train'?"});
  check_refused(shell, {"help", "train", "lm"}, 2, {"unexpected argument 'lm'"});
}

TEST_CASE("command line: data that are not what a command reads are answered with what is needed") {
  const Shell shell;
  io::write(shell.scratch / "text.txt", "One line.\n");
  io::make_directories(shell.scratch / "empty");
  for (const char* path : {"text.txt", "empty"}) {
    check_refused(shell, {"train", "mnist", "--data", path}, 5,
                  {"t10k-labels-idx1-ubyte", "heed data get mnist"});
    check_refused(shell, {"train", "lra-listops", "--data", path}, 5,
                  {"basic_train.tsv, basic_val.tsv and basic_test.tsv", "heed data generate listops --out"});
    check_refused(shell, {"data", "check", path}, path[0] == 't' ? 3 : 5,
                  {path, "reads sentence pairs only", "--dry-run"});
  }
  for (const char* option : {"--num-examples", "--test-size"})
    check_refused(shell, {"train", "mnist", option, "0"}, 2, {option, "= 0", "10 to 10000000"});
}

TEST_CASE("command line: wrong usage is named with the nearest right one, exit code 2") {
  const Shell shell;
  check_refused(shell, {"trian"}, 2, {"command 'trian' is unknown.", "Did you mean 'train'?"});
  check_refused(shell, {"--versoin"}, 2, {"--versoin"});
  check_refused(shell, {"train", "translat"}, 2,
                {"preset 'translat' is unknown.", "Did you mean 'translate'?", ".toml"});
  check_refused(shell, {"train", "--d-modle", "3"}, 2,
                {"option --d-modle is unknown.", "Did you mean --d-model?"});
  check_refused(shell, {"train", "--d-modle=3"}, 2, {"option --d-modle", "Did you mean --d-model?"});
  check_refused(shell, {"train", "--d-model", "wide"}, 2,
                {"--d-model", "model.d_model = wide is not legal; it takes a whole number"});
  check_refused(shell, {"train", "--d-model"}, 2, {"--d-model"});
  check_refused(shell, {"train", "--dry-run=yes"}, 2, {"--dry-run takes no value. Write it alone"});
  check_refused(shell, {"evaluate", "--json=", "no-such-run"}, 2, {"--json takes no value. Write it alone"});
  check_refused(shell, {"train", "--heads", "5"}, 2, {"heads = 5"});
  check_refused(shell, {"train", "--lr", "-1"}, 2, {"train.learning_rate = -1"});
  check_refused(shell, {"train", "--schedule", "cosin"}, 2, {"'cosin'", "Did you mean 'cosine'?"});
  check_refused(shell, {"train", "--attention", "sotfmax"}, 2, {"sotfmax", "Did you mean 'softmax'?"});
  check_refused(shell, {"train", "--set", "train.learning_rat=1"}, 2,
                {"--set", "'train.learning_rat' is unknown", "Did you mean 'train.learning_rate'?"});
  check_refused(shell, {"train", "--set", "train.learning_rate"}, 2, {"--set key=value"});
  check_refused(shell, {"train", "--threads", "0"}, 2, {"--threads = 0", "1 to 256"});
  check_refused(shell, {"train", "--memory", "much"}, 2, {"--memory", "'much'", "256M"});
  check_refused(shell, {"train", "--memory", "G"}, 2, {"--memory", "'G'", "256M"});
  check_refused(shell, {"train", "--memory", "0M"}, 2, {"--memory = 0M", "1 to 1048576, with M or G"});
  check_refused(shell, {"train", "lm", "--batch-size", "9223372036854775807"}, 2,
                {"--batch-size: train.batch_size = 9223372036854775807", "to 1000000000"});
  check_refused(shell, {"bench", "attention", "--longest", "9223372036854775807"}, 2,
                {"--longest = 9223372036854775807", "to 1000000000"});
  check_refused(shell, {"train", "--on-nan", "skpi"}, 2, {"--on-nan", "'skpi'", "Did you mean 'skip'?"});
  check_refused(shell, {"train", "--device", "gpu"}, 2, {"gpu"});
  check_refused(shell, {"train", "recall", "--device", "cpu", "--precision", "tf32"}, 2,
                {"train.precision = tf32", "bf16", "--device cuda"});
  check_refused(shell, {"train", "translate", "lm"}, 2, {"unexpected argument 'lm'"});
  check_refused(shell, {"train", "--name", "a/b", "--dry-run=maybe"}, 2, {"dry-run"});
  check_refused(shell, with({"train", "translate", "--name", "a/b"}, small), 2, {"a/b"});
  check_refused(shell, {"list", "preset"}, 2, {"'preset'", "Did you mean 'presets'?"});
  check_refused(shell, {"list"}, 2, {"heed list needs attention|layers|", "|data [NAME]"});
  check_refused(shell, {"data", "gte"}, 2, {"'gte'", "Did you mean 'get'?"});
  check_refused(shell, {"env", "now"}, 2, {"unexpected argument 'now'"});
  CHECK(!io::exists(shell.scratch / "runs"));
}

TEST_CASE("command line: bench says what it measures, and refuses what it does not know") {
  const Shell shell;
  const Result help = shell.run({"bench", "--help"});
  for (const char* part : {"train", "kernels", "attention", "gemm", "ops", "decode", "gpt-6x6x384-dropout"})
    CHECK_THAT(help.out, containing(part));
  check_refused(shell, {"bench"}, 2, {"heed bench needs"});
  check_refused(shell, {"bench", "trian"}, 2, {"'trian' is unknown.", "Did you mean 'train'?"});
  check_refused(shell, {"bench", "train", "babi"}, 2, {"'babi' is unknown.", "Did you mean 'baby'?"});
  check_refused(shell, {"bench", "train", "baby", "--rounds", "0"}, 2, {"--rounds = 0"});
  check_refused(shell, {"bench", "attention", "sotfmax"}, 2, {"Did you mean 'softmax'?"});
  check_refused(shell, {"bench", "gemm", "512"}, 2, {"unexpected argument '512'"});
  check_refused(shell, {"bench", "decode", "lra"}, 2, {"lra makes no tokens"});
  const Result steps =
      shell.run({"bench", "train", "baby", "lm", "--rounds", "3", "--layers", "1", "--d-model", "32",
                 "--batch-size", "2", "--max-length", "16", "--json", "--threads", "2"});
  CHECK(steps.code == 0);
  std::istringstream lines(steps.out);
  std::string line;
  for (const char* row : {"baby", "lm"}) {
    REQUIRE(std::getline(lines, line));
    const Json json = parse_json(line, row);
    CHECK(json.at("row").text() == row);
    CHECK(json.at("threads").integer() == 2);
    CHECK(json.at("steps").integer() == 3);
    CHECK(json.at("mapped_bytes").integer() == 0);
    CHECK(json.at("ratio").real() == Approx(json.at("step_ms").real() / json.at("products_ms").real()));
    CHECK(json.at("process_mib").real() > json.at("tensors_mib").real());
    CHECK(json.at("tokens_per_s").real() > 0);
  }
  const Result table = shell.run({"bench", "attention", "linear", "--longest", "64", "--threads", "1"});
  CHECK(table.code == 0);
  CHECK_THAT(table.out, containing("1 thread, kernels "));
  CHECK_THAT(table.out, containing("| attention"));
  for (const char* column : {"step ms", "tokens/s", "products ms", "ratio", "step MiB"})
    CHECK_THAT(table.out, containing(column));
}

TEST_CASE("command line: missing and damaged files have their own exit codes") {
  const Shell shell;
  check_refused(shell, {"show", "absent.toml"}, 5, {"absent.toml"});
  check_refused(shell, {"resume", "runs/none"}, 5, {"runs/none"});
  check_refused(shell, {"evaluate", "runs/none"}, 5, {"runs/none"});
  io::write(shell.scratch / "bad.tsv", "one side only\nand another\n");
  Result result = shell.run(with({"train", "translate", "--quiet", "--data", "bad.tsv"}, small));
  CHECK(result.code == 3);
  CHECK_THAT(result.err, containing("bad.tsv:1"));
  result = shell.run(with({"train", "translate", "--quiet", "--data", "no/such.tsv"}, small));
  CHECK(result.code == 5);
  CHECK_THAT(result.err, containing("no/such.tsv"));
}

TEST_CASE("command line: settings are shown with their origin, and a dry run trains nothing") {
  const Shell shell;
  const Result dry =
      shell.run({"train", "translate", "--lr", "0.25", "--attention", "linear", "--seed", "-0", "--dry-run"});
  CHECK(dry.code == 0);
  Config config = read_config(dry.out, "dry");
  CHECK(config.train.schedule.learning_rate == 0.25);
  CHECK(config.attention.encoder == "linear");
  CHECK(config.attention.decoder == "linear");
  CHECK(config.attention.cross == "softmax");
  CHECK(!io::exists(shell.scratch / "runs"));
  const Result before = shell.run(
      {"train", "--dry-run", "--lr", "0.25", "--set", "train.seed=3", "--set", "train.grad_clip=2", "lm"});
  CHECK(before.code == 0);
  Config lm = read_config(before.out, "dry");
  CHECK(lm.task_name == "lm");
  CHECK(lm.train.seed == 3);
  CHECK(lm.train.optimizer.grad_clip == 2);
  const Result show = shell.run({"show", "lm", "--set", "model.d_model=96"});
  CHECK(show.code == 0);
  CHECK(read_config(show.out, "show").model.d_model == 96);
  const Result origin = shell.run({"show", "mnist", "--origin", "--lr", "0.5"});
  CHECK(origin.code == 0);
  CHECK_THAT(origin.out, containing("preset mnist"));
  CHECK_THAT(origin.out, containing("--lr"));
  CHECK_THAT(origin.out, containing("default"));
  io::write(shell.scratch / "plain.toml", "task = \"lm\"\n[model]\ndropout = 0.25\n[train]\nmax_steps = 1\n");
  CHECK_THAT(shell.run({"show", (shell.scratch / "plain.toml").string(), "--origin"}).out,
             containing("model.attention_dropout ") && containing(" follows model.dropout\n"));
  const Result model = shell.run({"show", "lm", "--model", "--num-examples", "3000"});
  CHECK(model.code == 0);
  CHECK_THAT(model.out, containing("# model"));
}

TEST_CASE("command line: everything that can be listed is") {
  const Shell shell;
  const Result presets_list = shell.run({"list", "presets"});
  for (const Preset& preset : presets()) CHECK_THAT(presets_list.out, containing(preset.name));
  const Result tasks_list = shell.run({"list", "tasks"});
  for (const TaskEntry& task : tasks()) CHECK_THAT(tasks_list.out, containing(task.name));
  for (const char* name : {"softmax", "linear", "additive"}) {
    CHECK_THAT(shell.run({"list", "attention"}).out, containing(name));
    CHECK_THAT(shell.run({"list", "attention", "--markdown"}).out, containing(name));
  }
  CHECK(parse_json(shell.run({"list", "attention", "--json"}).out, "list").list().size() >= 3);
  CHECK_THAT(shell.run({"list", "data"}).out, containing("opus_books"));
  const std::string commands_list = shell.run({"list", "commands"}).out;
  const std::string page = shell.run({"list", "commands", "--markdown"}).out;
  for (const Command& command : commands()) {
    CHECK_THAT(commands_list, containing(command.name));
    CHECK_THAT(page, containing(text("\n## ", command.name, "\n")));
    for (const CommandOption& option : command.options)
      CHECK_THAT(page, containing(text("- `--", option.name)));
  }
  check_refused(shell, {"list", "presets", "--markdown"}, 2, {"attention, layers, commands and settings"});
  const Result none = shell.run({"list", "runs"});
  CHECK(none.code == 0);
  CHECK(none.out.empty());
}

TEST_CASE("command line: env is text for people and JSON for programs") {
  const Shell shell;
  const Result json = shell.run({"env", "--json"});
  CHECK(json.code == 0);
  const Json metadata = parse_json(json.out, "env");
  CHECK(metadata.at("threads").integer() >= 1);
  CHECK(!metadata.at("blas_core").text().empty());
  CHECK_THAT(metadata.at("utf8proc").text(), containing(", Unicode "));
  const std::string blas = metadata.at("blas_build").text();
  CHECK((blas == "pthread" || blas == "openmp" || blas == "serial"));
  CHECK_THAT(shell.run({"env"}).out, containing("blas_core"));
}

TEST_CASE("command line: a translator from its first step to its maps") {
  const Shell shell;
  const Path run = shell.scratch / "runs/first";
  const Result trained = shell.run(with({"train", "translate", "--name", "first"}, small));
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  CHECK(trained.out.empty());
  for (const char* part : {"parameters", "step 4/4", "bleu", "copying the source", "runs/first/report.html",
                           "heed resume runs/first --steps 8"}) {
    CHECK_THAT(trained.err, containing(part));
  }
  for (const char* name : {"config.toml", "manifest.json", "metrics.jsonl", "metrics.csv", "scores.json",
                           "samples.txt", "report.html"}) {
    CAPTURE(name);
    CHECK(io::exists(run / name));
  }
  CHECK(!io::list(run / "tb").empty());
  CHECK(list_checkpoints(run).back() == 4);
  const Json manifest = parse_json(io::read(run / "manifest.json"), "manifest");
  CHECK(manifest.at("parameters").integer() > 0);
  CHECK(manifest.at("seed").integer() == 1);
  CHECK_THAT(io::read(run / "report.html"), containing("<svg"));

  const Result scored = shell.run({"evaluate", "runs/first", "--json"});
  REQUIRE(scored.code == 0);
  const Json scores = parse_json(scored.out, "scores"),
             kept = parse_json(io::read(run / "scores.json"), "kept");
  for (const char* name : {"bleu", "chrf", "wer", "cer", "loss"})
    CHECK(scores.at(name).real() == kept.at(name).real());
  const Result told = shell.run({"evaluate", "runs/first", "--beam-size", "2", "--checkpoint", "last"});
  CHECK(told.code == 0);
  CHECK_THAT(told.out,
             Catch::Matchers::Matches("[^]*copying the source scores BLEU [0-9]+(\\.[0-9]{1,2})?\n[^]*"));
  io::write(shell.scratch / "pairs.tsv", "Good.\tBene.\nThe man.\tL'uomo.\nGood.\tBene.\n");  // all of it
  CHECK_THAT(shell.run({"evaluate", "runs/first", "--data", "pairs.tsv"}).out,
             containing("\n  3 test pairs of pairs.tsv, "));
  io::write(shell.scratch / "none.tsv", "Good.\t\n");
  check_refused(shell, {"evaluate", "runs/first", "--data", "none.tsv"}, 3, {"none.tsv", "no pair"});
  check_refused(shell, {"evaluate", "runs/first", "--beam-size", "0"}, 2, {"decode.beam_size = 0"});
  check_refused(shell, {"evaluate", "runs/first", "--checkpoint", "777"}, 3, {"777"});

  const Result words = shell.run({"translate", "runs/first", "The man sees a dog.", "Good."});
  CHECK(words.code == 0);
  CHECK(std::count(words.out.begin(), words.out.end(), '\n') == 2);
  const Result lines = shell.run({"translate", "runs/first"}, "The man sees a dog.\r\nGood.\n");
  CHECK(lines.out == words.out);
  CHECK(shell.run({"translate", "runs/first", "--precision", "bf16", "The man sees a dog."}).code == 0);
  CHECK(words.err.find("left out") == std::string::npos);
  CHECK(shell.run({"translate", "runs/first"}, "").out.empty());
  CHECK(shell.run({"translate", "runs/first"}, "\n\n").out == "\n\n");
  CHECK(shell.run({"translate", "runs/first", "--beam-size", "1", "The man sees a dog.", "Good."}).out ==
        words.out);
  CHECK(shell
            .run({"translate", "--beam-size", "1", "runs/first", "The man sees a dog.", "--length-penalty",
                  "-0.5", "Good."})
            .out == words.out);
  CHECK(shell.run({"translate", "runs/first", "--beam-size", "3"}, "\n\xff\xfe broken\n").code != 1);
  check_refused(shell, {"generate", "runs/first"}, 2, {"runs/first is a run of the task translate"});

  const Result looked = shell.run({"inspect", "runs/first", "The old man smiled."});
  INFO(looked.err);
  CHECK(looked.code == 0);
  CHECK_THAT(looked.out, containing("The old man smiled."));
  for (const char* name : {"maps.html", "all-heads.svg", "maps.safetensors", "cross-0.npy",
                           "encoder-self-0.npy", "decoder-self-0-head-1.svg"}) {
    CAPTURE(name);
    CHECK(io::exists(run / "inspect" / name));
  }
  CHECK(
      shell.run({"inspect", "runs/first", "--kind", "cross", "--layer", "0", "--head", "1", "--out", "there"})
          .code == 0);
  CHECK(io::exists(shell.scratch / "there/maps.html"));
  check_refused(shell, {"inspect", "runs/first", "A man.", "--head", "9"}, 2, {"--head = 9"});
  for (const char* name : {"cross-0-attribution.npy", "encoder-self-0-rollout.npy"})
    CHECK(io::exists(shell.scratch / "there" / name));
  CHECK(!io::exists(shell.scratch / "there/cross-0-head-0-paper.svg"));
  CHECK(shell.run({"inspect", "runs/first", "A man.", "--paper", "--out", "paper"}).code == 0);
  CHECK(io::exists(shell.scratch / "paper/cross-0-head-0-paper.svg"));
  const std::string page = io::read(shell.scratch / "there/maps.html");
  for (const char* part : {"\"attribution\":{", "\"rollout\":{", "\"softmax\":true"}) {
    CAPTURE(part);
    CHECK_THAT(page, containing(part));
  }
  // In the terminal any head, their mean, attribution and rollout; nothing is written.
  const Result mean =
      shell.run({"inspect", "runs/first", "A man.", "--terminal", "--kind", "encoder", "--head", "mean"});
  CHECK_THAT(mean.out, containing("encoder self, mean of "));
  CHECK_THAT(mean.out, !containing("matrices"));
  CHECK_THAT(shell.run({"inspect", "runs/first", "A man.", "--terminal", "--show", "attribution"}).out,
             containing("weight times gradient, as shares of the largest"));
  CHECK_THAT(
      shell.run({"inspect", "runs/first", "A man.", "--terminal", "--kind", "decoder", "--show", "rollout"})
          .out,
      containing("decoder self, rollout of layers 0 to 0"));
  check_refused(shell,
                {"inspect", "runs/first", "A man.", "--terminal", "--kind", "cross", "--show", "rollout"}, 2,
                {"--show rollout: no map that was asked for has one", "self-attention"});
  check_refused(shell, {"inspect", "runs/first", "A man.", "--show", "atribution"}, 2, {"attribution"});
  check_refused(shell, {"inspect", "runs/first", "A man.", "--terminal", "--out", "x"}, 2, {"--terminal"});
  check_refused(shell, {"inspect", "runs/first", "A man.", "--longest", "0"}, 2, {"--longest = 0"});
  check_refused(shell, {"inspect", "runs/first", "A man.", "--layer", "9"}, 2,
                {"There are: encoder self layer 0"});

  CHECK_THAT(shell.run({"list", "runs"}).out, containing("runs/first"));
  CHECK_THAT(shell.run({"show", "runs/first"}).out, containing("# model of step"));
  check_refused(shell, with({"train", "translate", "--name", "first"}, small), 2, {"first"});

  const Result done = shell.run({"resume", "runs/first"});
  CHECK(done.code == 0);
  CHECK_THAT(done.err, containing("the run has its 4 steps"));
  const Result longer = shell.run({"resume", "runs/first", "--steps", "6"});
  CHECK(longer.code == 0);
  CHECK_THAT(longer.err, containing("resumed at step 4") && containing(" for the 2 steps left, "));
  CHECK(list_checkpoints(run).back() == 6);
  CHECK(parse_json(io::read(run / "scores.json"), "kept").at("of").integer() == 6);
}

TEST_CASE("command line: a run whose scores were never written gets them by resuming") {
  const Shell shell;
  REQUIRE(shell.run(with({"train", "translate", "--name", "a", "--quiet"}, small)).code == 0);
  const std::string before = io::read(shell.scratch / "runs/a/scores.json");
  io::remove_all(shell.scratch / "runs/a/scores.json");
  io::remove_all(shell.scratch / "runs/a/report.html");
  CHECK(shell.run({"resume", "runs/a", "--quiet"}).code == 0);
  CHECK(io::read(shell.scratch / "runs/a/scores.json") == before);
  CHECK(io::exists(shell.scratch / "runs/a/report.html"));
}

TEST_CASE("command line: a busy folder is 6, a stopped run 130 or 143, and resuming goes on from there") {
  const int number = GENERATE(SIGINT, SIGTERM);
  const Shell shell;
  const pid_t child =
      shell.start(with({"train", "translate", "--name", "long", "--set", "train.max_steps=100000"}, small));
  const Path run = shell.scratch / "runs/long";
  for (int i = 0; i < 500 && list_checkpoints(run).empty(); ++i) ::usleep(10'000);
  REQUIRE(!list_checkpoints(run).empty());
  CHECK(fault_of([&] { RunFolder::resume(run, "test"); }) == Fault::busy);
  const Shell other;
  check_refused(other, {"resume", run.string()}, 6, {"pid " + std::to_string(child), "heed train translate"});
  ::kill(child, number);
  const Result stopped = shell.end(child);
  CHECK(stopped.code == 128 + number);
  CHECK_THAT(stopped.err, containing("resume with: heed resume runs/long"));
  const int64_t step = list_checkpoints(run).back();
  const Result resumed = shell.run({"resume", "runs/long", "--steps", std::to_string(step + 2)});
  CHECK(resumed.code == 0);
  CHECK_THAT(resumed.err, containing("resumed at step " + std::to_string(step)));
}

TEST_CASE("command line: resuming with other data is refused and changes nothing") {
  const Shell shell;
  std::string lines;
  for (int i = 0; i < 60; ++i)
    lines += text("number ", i % 7, " and ", i, "\tnumero ", i % 7, " e ", i, "\n");
  io::write(shell.scratch / "pairs.tsv", lines);
  const auto words = with({"train", "translate", "--name", "a", "--quiet", "--data", "pairs.tsv"}, small);
  REQUIRE(shell.run(words).code == 0);
  const std::string config = io::read(shell.scratch / "runs/a/config.toml");
  io::write(shell.scratch / "pairs.tsv", lines + "one more\tuno di piu\n");
  check_refused(shell, {"resume", "runs/a", "--steps", "8", "--quiet"}, 3, {"the data changed"});
  CHECK(io::read(shell.scratch / "runs/a/config.toml") == config);
  CHECK(list_checkpoints(shell.scratch / "runs/a").back() == 4);
  io::write(shell.scratch / "other.tsv", [&] {
    std::string others = lines;
    std::replace(others.begin(), others.end(), 'o', 'u');
    return others;
  }());
  check_refused(shell, {"resume", "runs/a", "--data", "other.tsv", "--steps", "8", "--quiet"}, 3,
                {"the data changed: what was sha256 pairs.tsv ", " and is now sha256 other.tsv "});
  CHECK(list_checkpoints(shell.scratch / "runs/a").back() == 4);
  io::write(shell.scratch / "moved.tsv", lines);
  io::remove_all(shell.scratch / "pairs.tsv");
  check_refused(shell, {"resume", "runs/a", "--steps", "8", "--quiet"}, 5, {"pairs.tsv"});
  CHECK(shell.run({"resume", "runs/a", "--data", "moved.tsv", "--steps", "8", "--quiet"}).code == 0);
}

TEST_CASE("command line: data check tells what a file holds, whatever its size") {
  const Shell shell;
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += text("number ", i, "\tnumero ", i, "\n");
  io::write(shell.scratch / "few.tsv", lines + "number 0\tnumero 0\n");
  const Result few = shell.run({"data", "check", "few.tsv"});
  CHECK(few.code == 0);
  CHECK_THAT(few.out, containing("tsv, 201 lines, 1 repeats\n200 pairs; "));
  CHECK_THAT(unwrapped(few.out, "  "), containing("--data.validation 20 --data.test_size 20\nsha256 "));
  for (int i = 200; i < 2001; ++i) lines += text("number ", i, "\tnumero ", i, "\n");
  io::write(shell.scratch / "more.tsv", lines);
  CHECK_THAT(shell.run({"data", "check", "more.tsv"}).out,
             containing("\n1 train, 1000 validation, 1000 test pairs with the default split\nsha256 "));
}

TEST_CASE("command line: generating data tells how far it is, and a signal leaves nothing behind") {
  const Shell shell;
  io::make_directories(shell.scratch / "empty");
  for (const char* folder : {"new", "empty"}) {
    CAPTURE(folder);
    const pid_t child =
        shell.start({"data", "generate", "listops", "--num-examples", "1000000", "--out", folder});
    const double began = seconds_now();
    while (io::read(shell.scratch / "err").find(" of 1004000, about ") == std::string::npos) {
      REQUIRE(seconds_now() - began < 60);
      ::usleep(20000);
    }
    if (folder == std::string("empty")) io::write(shell.scratch / "empty/theirs", "put there meanwhile");
    ::kill(child, SIGINT);
    const Result end = shell.end(child);
    CHECK(end.code == 130);
    CHECK(end.out.empty());
    CHECK_THAT(end.err, containing("  stopped     nothing is left in ") && containing(folder));
  }
  CHECK(!io::exists(shell.scratch / "new"));
  CHECK((io::list(shell.scratch / "empty") == std::vector<Path>{"theirs"}));
}

TEST_CASE("command line: a start that fails leaves no run behind") {
  const Shell shell;
  check_refused(shell, {"train", "translate", "--data", "no-such.tsv"}, 5,
                {"no-such.tsv", "exist", "--data"});
  io::write(shell.scratch / "one.tsv", "only one side\n");
  check_refused(shell, {"train", "translate", "--data", "one.tsv"}, 3, {"one.tsv:1"});
  CHECK(io::list(shell.scratch / "runs").empty());
}

TEST_CASE("command line: what a run takes is told before it begins and compared when it ends") {
  const Shell shell;
  const Result show = shell.run(with({"show", "translate"}, {small.begin(), small.end() - 2}));
  CHECK(show.code == 0);
  for (const char* label : {"# parameters ", "# step ", "# memory ", "# time "})
    CHECK_THAT(show.out, containing(label));
  CHECK_THAT(show.out, containing("weights ") && containing("activations by module: "));
  CHECK_THAT(shell.run({"show", "lm", "--data", "absent.txt"}).out,
             containing("# estimate     needs the data: "));
  CHECK_THAT(shell.run(with({"train", "--dry-run"}, small)).out, containing("# memory "));
  std::vector<std::string> without_steps = small;
  const auto steps = std::ranges::find(without_steps, "--steps");
  without_steps.erase(steps, steps + 2);
  const Result misspelt =
      shell.run(with({"train", "--dry-run", "--groups", "encodr.*: rate=2"}, without_steps));
  CHECK(misspelt.code == 2);
  CHECK_THAT(misspelt.err, containing("encodr.* chooses no parameter") && containing("are: encoder.blocks."));
  check_refused(shell, with({"train", "--dry-run", "--groups", "encoder.*:"}, small), 2,
                {"train.groups: the group encoder.* has no options"});
  const Result train = shell.run(with({"train", "--name", "a"}, small));
  CHECK(train.code == 0);
  CHECK_THAT(train.err, containing(" peak (estimate); tensors ") && containing("for 4 steps, ") &&
                            containing(" and the test (estimate)") && containing(" in test and report\n"));
  const Json manifest = parse_json(io::read(shell.scratch / "runs/a/manifest.json"), "manifest");
  CHECK(manifest.at("estimate").at("memory_bytes").integer() > 1 << 20);
  CHECK(std::abs(manifest.at("took").at("memory_estimate_off").real()) < 0.1);
  CHECK(manifest.at("took").at("seconds_of_steps").real() > 0);
  CHECK(manifest.at("took").at("seconds").real() > manifest.at("took").at("seconds_of_steps").real());
  CHECK(manifest.at("estimate").at("seconds").real() > manifest.at("estimate").at("seconds_of_steps").real());
  const Result capped = shell.run(with({"train", "--name", "b", "--memory", "1M"}, small));
  CHECK(capped.code == 7);
  for (const char* part :
       {"error: memory of the machine: ", "the cap is 1.0 MB", "Most was held by ", "Try --batch-tokens 100"})
    CHECK_THAT(capped.err, containing(part));
  CHECK(!io::exists(shell.scratch / "runs/b"));
}

TEST_CASE("command line: a value that is not finite ends a run with code 4, or is stepped over") {
  Shell shell;
  const Result stopped = shell.run_with_fault("gradient@3", with({"train", "--name", "a"}, small));
  CHECK(stopped.code == 4);
  CHECK_THAT(stopped.err, containing("at step 3: first bad value in the gradient of ") &&
                              containing("Last good: step_000002"));
  CHECK(shell.run({"resume", "runs/a", "--on-nan", "skip"}).code == 0);
  const Result skipped =
      shell.run_with_fault("gradient@3", with({"train", "--name", "b", "--on-nan", "skip"}, small));
  CHECK(skipped.code == 0);
  CHECK_THAT(skipped.err,
             containing("  skipped     the gradient norm became nan at step 3: first bad value in"));
  CHECK_THAT(io::read(shell.scratch / "runs/b/metrics.jsonl"), containing("\"skipped\": 1}"));
}

TEST_CASE("command line: output that cannot be written is an error of the file system") {
  if (!io::exists("/dev/full")) return;
  const Shell shell;
  REQUIRE(::symlink("/dev/full", (shell.scratch / "out").c_str()) == 0);
  for (const char* what : {"attention", "presets"}) {
    const pid_t child = shell.start({"list", what});
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WEXITSTATUS(status) == 5);
    CHECK_THAT(io::read(shell.scratch / "err"), containing("standard output: No space left"));
  }
}

TEST_CASE("command line: a line of standard input that has no end is refused") {
  const Shell shell;
  REQUIRE(shell.run(with({"train", "translate", "--name", "a", "--quiet"}, small)).code == 0);
  const Result result = shell.run({"translate", "runs/a"}, "the cat\n" + std::string(2 << 20, 'x'));
  CHECK(result.code == 3);
  CHECK_THAT(result.err, containing("standard input:2: the line has more than"));
}
