// Weights that resumed runs continue with, and runs that have lost them.
#include "heed/train/run/resume_point.h"

#include "heed/core/io/files.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/train/run/weights_from_run.h"

using namespace heed;

namespace {

constexpr const char* line = "{\"step\": 1, \"loss\": 2}\n";

/// A run without checkpoint, and its manifest.
struct Begun {
  explicit Begun(const Json& manifest) {
    if (!manifest.is_null()) run.write_manifest(manifest);
  }
  Scratch scratch;
  RunFolder run = RunFolder::create({.out = scratch.path(), .name = "a", .config = "task = \"lm\"\n"});

  std::string refusal() const {
    try {
      resume_point(run);
    } catch (const Error& error) {
      CHECK(error.fault() == Fault::data);
      return error.what();
    }
    return "";
  }
};

const Json fresh = Json::object({{"format", 3}, {first_checkpoint_key, Json()}});
const Json earlier = Json::object({{"format", 3}});  // written by a program that kept no first checkpoint

}  // namespace

TEST_CASE("resume point: a run continues from its checkpoint, or begins again where it has not had any") {
  const Begun nothing{Json()}, some(fresh);
  CHECK(nothing.refusal().empty());
  io::write(some.run.metrics(), line);  // stopped between its first line and its first checkpoint
  const ResumePoint begin = resume_point(some.run);
  CHECK(!begin.checkpoint);
  CHECK(!begin.weights_from_run);
  write_checkpoint(some.run.path(), 3, {{"state.json", "{}"}});
  write_checkpoint(some.run.path(), 6, {{"state.json", "{}"}});
  CHECK(resume_point(some.run).checkpoint->step == 6);
  CHECK(resume_point(some.run, "3").checkpoint->step == 3);
}

TEST_CASE("resume point: a run that has lost its checkpoints is refused") {
  const Begun run(fresh);
  run.run.note_checkpoint(3);
  run.run.note_checkpoint(6);
  CHECK(run.run.read_manifest()->at(first_checkpoint_key).integer() == 3);
  CHECK_THAT(run.refusal(), containing(run.run.path().string()) &&
                                containing("has lost its checkpoints (its first was of step 3)") &&
                                containing("Put ") && containing("/a/ckpt back"));
  // A manifest of an earlier program does not say so, but there are metrics.
  const Begun old(earlier);
  CHECK(old.refusal().empty());
  io::write(old.run.metrics(), "");
  CHECK(old.refusal().empty());
  io::write(old.run.metrics(), line);
  CHECK_THAT(old.refusal(), containing("(metrics.jsonl has its steps)"));
  const Begun none{Json()};
  io::write(none.run.metrics(), line);
  CHECK_THAT(none.refusal(), containing("has lost its checkpoints"));
  const Begun imported(Json(earlier).set("imported", "gpt2"));
  CHECK_THAT(imported.refusal(), containing("(it was imported with one)"));
}

TEST_CASE("resume point: a run that began from weights is refused where they are gone") {
  const Checkpoint weights{.folder = "base", .step = 4, .files = {{"model.safetensors", "numbers"}}};
  const Begun run{Json()};
  write_weights_from_run(run.run.path(), weights, "base");
  const ResumePoint begin = resume_point(run.run);
  REQUIRE(begin.weights_from_run);
  CHECK(begin.weights_from_run->file("model.safetensors") == "numbers");
  CHECK(origin_metadata(*begin.weights_from_run).at("run").text() == "base");
  io::remove_all(weights_from_run_folder(run.run.path()) / "ckpt");
  CHECK_THAT(run.refusal(), containing("begins from the weights of another run") && containing("initial"));
  io::remove_all(weights_from_run_folder(run.run.path()));
  CHECK_THAT(run.refusal(), containing("begins from the weights of another run"));
  // A folder that a killed start of an earlier program has left: no manifest, and no weights yet.
  const Begun old{Json()};
  io::make_directories(weights_from_run_folder(old.run.path()) / "ckpt/.tmp-step_000004-0");
  CHECK_THAT(old.refusal(), containing("resumed, it would begin from random ones"));
}

TEST_CASE("resume point: the step of the first checkpoint stays in the manifest over all sessions") {
  CHECK(first_checkpoint(std::nullopt, 0).is_null());
  CHECK(first_checkpoint(fresh, 0).is_null());
  CHECK(first_checkpoint(fresh, 6).integer() == 6);
  CHECK(first_checkpoint(earlier, 6).integer() == 6);
  CHECK(first_checkpoint(Json(fresh).set(first_checkpoint_key, 3), 6).integer() == 3);
}
