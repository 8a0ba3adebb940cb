// Runs of other versions: a folder of heed 0.1, and folders of a hypothetical newer version.
#include <filesystem>

#include "heed/core/io/json.h"
#include "heed/core/version.h"
#include "heed/tests/train/shell.h"
#include "heed/train/config/config.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/format_version.h"
#include "heed/train/run/metrics_log.h"
#include "heed/train/run/session_history.h"

using namespace heed;

namespace {

const std::string old_run = "runs/run-0.1";

/// A copy of the run folder that heed 0.1.0 (9a35fa4) wrote: translate, width 4, 6 steps. Of its files those
/// are there that a program reads.
struct Fixture : Shell {
  Path path = scratch / old_run;
  Fixture() {
    io::make_directories(path.parent_path());
    std::filesystem::copy(Path(source_folder()) / "tests/integration/fixtures/run-0.1", path,
                          std::filesystem::copy_options::recursive);
  }
  Json json(const char* name) const { return parse_json(io::read(path / name), name); }
  void change(const char* name, const char* key, const Json& value) const {
    io::write(path / name, json(name).set(key, value).dump());
  }
};

constexpr auto checkpoint_manifest = "ckpt/step_000006/MANIFEST.json";

}  // namespace

TEST_CASE("versions: a run of 0.1 is evaluated, compared and translated with") {
  const Fixture shell;
  const Result scored = shell.run({"evaluate", old_run, "--json", "--threads", "1"});
  CAPTURE(scored.err);
  REQUIRE(scored.code == 0);
  const Json scores = parse_json(scored.out, "scores"), kept = shell.json("scores.json");
  CHECK(scores.at("step").integer() == 6);
  CHECK(scores.at("loss").real() == Approx(kept.at("loss").real()).epsilon(1e-4));
  CHECK(shell.run({"translate", old_run, "The man sees a dog."}).code == 0);
  const Result compared = shell.run({"compare", old_run});
  CHECK(compared.code == 0);
  CHECK_THAT(io::read(shell.scratch / "runs/compare/compare.csv"), containing("(source unknown, "));
}

TEST_CASE("versions: a run of 0.1 goes on, keeps what it said of its first session, and is warned") {
  const Fixture shell;
  const Json before = shell.json("manifest.json");
  const Result resumed = shell.run({"resume", old_run, "--steps", "8", "--threads", "1"});
  CAPTURE(resumed.err);
  REQUIRE(resumed.code == 0);
  CHECK_THAT(resumed.err, containing("warning: the steps to 6 were computed otherwise") &&
                              containing("instead of 0.1.0 (source unknown, g++ 12.2.0)"));
  CHECK(list_checkpoints(shell.path).back() == 8);
  const Json after = shell.json("manifest.json");
  CHECK(after.at("format").integer() == run_format);
  for (const char* key : {"cpu", "started", "isa", "blas_core", "threads"})
    CHECK(after.at(key).dump() == before.at(key).dump());
  CHECK(after.at("command").dump() == before.at("command").dump());
  CHECK(after.at("steps").integer() == 8);
  const std::vector<Json> sessions = sessions_of(after);
  REQUIRE(sessions.size() == 2);
  CHECK(sessions[0].at("started").text() == before.at("started").text());
  CHECK(sessions[1].at("step").integer() == 6);
  CHECK(sessions[1].at("command").list().front().text() == "resume");
  CHECK(sessions[1].at("took").at("steps").integer() == 2);
  CHECK(shell.json("ckpt/step_000008/MANIFEST.json").at("heed").text() == HEED_VERSION);
  // By the same program on the same machine it goes on without a word.
  CHECK_THAT(shell.run({"resume", old_run, "--steps", "9"}).err, !containing("warning"));
  CHECK(sessions_of(shell.json("manifest.json")).size() == 3);
}

TEST_CASE("versions: a run of 0.1 is read by its old names and goes on as one that was written anew") {
  const Fixture shell;
  // A copy of the run has its settings and metrics under the names of today.
  const std::string anew = "runs/anew";
  std::filesystem::copy(shell.path, shell.scratch / anew, std::filesystem::copy_options::recursive);
  Config config = read_config(io::read(shell.path / "config.toml"), "config.toml");
  CHECK(config.model.d_model == 4);
  CHECK(config.model.tie_embeddings == Tie::output);
  CHECK(config.train.grad_accumulation == 2);
  CHECK(config.train.schedule.warmup_steps == 150);
  CHECK(config.decode.max_extra_tokens == 50);
  io::write(shell.scratch / anew / "config.toml", to_toml(config));
  CHECK_THAT(io::read(shell.scratch / anew / "config.toml"),
             containing("grad_accumulation = 2") && !containing("\naccumulate ="));
  for (const std::string& run : {old_run, anew})
    REQUIRE(shell.run({"resume", run, "--steps", "9", "--threads", "1", "--quiet"}).code == 0);
  for (const char* file : {"ckpt/step_000009/model.safetensors", "ckpt/step_000009/optim.safetensors"})
    CHECK((io::read(shell.path / file) == io::read(shell.scratch / anew / file)));
  const auto metrics = read_metrics(shell.path / "metrics.jsonl");
  const auto found = std::find_if(metrics.begin(), metrics.end(),
                                  [](const MetricSeries& one) { return one.name == "learning_rate"; });
  REQUIRE(found != metrics.end());
  CHECK(found->steps == std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(found->values[0] == Approx(2e-5));
}

TEST_CASE("versions: a resume on another instruction set prints a warning, once steps were taken there") {
  const Fixture shell;
  REQUIRE(shell.run({"resume", old_run, "--steps", "7", "--quiet"}).code == 0);
  Json manifest = shell.json("manifest.json");
  std::vector<Json> sessions = sessions_of(manifest);
  sessions.back().set("isa", "avx1024");
  shell.change("manifest.json", "sessions", sessions);
  const Result told = shell.run({"resume", old_run, "--steps", "8", "--quiet"});
  CHECK(told.code == 0);
  CHECK_THAT(told.err, containing("warning: ") && containing(" instead of avx1024") && containing("neither"));
}

TEST_CASE("versions: a checkpoint without a number is of format 1") {
  const Fixture shell;
  Json plain = Json::object();
  const Json whole = shell.json(checkpoint_manifest);
  for (const auto& [key, value] : whole.members()) {
    if (key != "format") plain.set(key, value);
  }
  io::write(shell.path / checkpoint_manifest, plain.dump());
  CHECK(open_checkpoint(shell.path).step == 6);
}

TEST_CASE(
    "versions: a newer checkpoint is told as newer, never as damaged, and another that can be read is "
    "named") {
  const Fixture shell;
  shell.change(checkpoint_manifest, "heed", "7.0.0");
  shell.change(checkpoint_manifest, "format", checkpoint_format + 1);
  const std::string words = text("was written by a newer heed (7.0.0, format ", checkpoint_format + 1,
                                 "; this program reads up to ", checkpoint_format, ")");
  check_refused(shell, {"resume", old_run}, 3, {words, "step_000006", "MANIFEST.json"});
  check_refused(shell, {"evaluate", old_run}, 3, {words, "Go on with it by that version."});
  CHECK_THROWS_WITH(open_checkpoint(shell.path), !containing("damaged") && !containing("Train again"));
  write_checkpoint(shell.path, 4, {{"state.json", "{}"}});
  CHECK_THROWS_WITH(open_checkpoint(shell.path), containing("--checkpoint 4"));
  for (const Json& nonsense : {Json(0), Json("2"), Json(1.5)}) {
    shell.change(checkpoint_manifest, "format", nonsense);
    CHECK_THROWS_WITH(open_checkpoint(shell.path), containing("damaged") && containing("its format is "));
  }
}

TEST_CASE("versions: the error for a newer run folder says so before its settings are read") {
  const Fixture shell;
  shell.change("manifest.json", "format", run_format + 1);
  io::write(shell.path / "config.toml", "what = \"a newer heed writes\"\n");
  const std::string words = text("was written by a newer heed (0.1.0, format ", run_format + 1,
                                 "; this program reads up to ", run_format, ")");
  for (const char* verb : {"resume", "evaluate", "compare"})
    check_refused(shell, {verb, old_run}, 3, {old_run, words});
}
