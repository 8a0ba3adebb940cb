// Planted non-finite values: found, named, and stopped at or skipped.
#include "heed/train/loop/find_non_finite.h"

#include "heed/core/io/files.h"
#include "heed/nn/init.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/small_run.h"

using namespace heed;

namespace {

/// Digits, whose batches hold floats.
Config digits_config(const Settings& more = {}) {
  Config config = make_config("mnist");
  const Settings settings{{"data.num_examples", "60"},  {"data.test_size", "20"},  {"model.d_model", "8"},
                          {"model.heads", "2"},         {"model.layers", "1"},     {"model.d_ff", "8"},
                          {"train.epochs", "0"},        {"train.max_steps", "12"}, {"train.batch_size", "8"},
                          {"train.validate_every", "3"}};
  for (const Settings& list : {settings, more}) {
    for (const auto& [key, value] : list) config.set(key, value, "");
  }
  config.check();
  return config;
}

std::string message(const Path& run, Config config, const std::string& fault = "") {
  try {
    train_session(run, std::move(config), -1, "last", fault);
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::numeric);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("non-finite search: a planted value is caught at its step, and its module and tensor are named") {
  Scratch scratch;
  struct Case {
    const char *fault, *said;
  };
  for (const Case& one : std::vector<Case>{
           {"parameter:decoder.blocks.0.cross.value.weight@5",
            "at step 5: first bad value in decoder.blocks.0.cross.value.weight (nan): a parameter, 1 of 256 "
            "values, shape [16, 16]. Last good: step_000003. Lower train.learning_rate (now 0.01)"},
           {"parameter:encoder.norm.gain:inf@4",
            "at step 4: first bad value in encoder.norm.gain (inf): a parameter, 1 of 16 values"},
           {"gradient:target.tokens.weight:-inf@7",
            "train: the gradient norm became inf at step 7: first bad value in the gradient of "
            "target.tokens.weight (-inf): summed over the step"},
           {"gradient@1", "at step 1: first bad value in the gradient of "}}) {
    CAPTURE(one.fault);
    const Path run = scratch / "run";
    const std::string said = message(run, tiny(), one.fault);
    CHECK_THAT(said, containing(one.said));
    // What was good before is kept, and the run can go on from there to the end of one that never met it.
    if (std::string(one.fault).ends_with("@1")) {
      CHECK_THAT(said, containing("No checkpoint was there yet."));
      CHECK(list_checkpoints(run).empty());
    } else {
      CHECK(list_checkpoints(run).back() == (std::string(one.fault).ends_with("@7") ? 6 : 3));
      CHECK(train_session(run, tiny()).step == 12);
      if (!io::exists(scratch / "whole")) train_session(scratch / "whole", tiny());
      check_same(scratch / "whole", run, 12);
    }
    io::remove_all(run);
  }
}

TEST_CASE("non-finite search: a bad number in the input is told from one that was computed") {
  Scratch scratch;
  const std::string said = message(scratch / "digits", digits_config(), "input:inf@4");
  CHECK_THAT(said, containing("at step 4: first bad value in the input (inf): patches of the batch, 1 of "));
  CHECK_THAT(said, containing("Last good: step_000003"));
  CHECK_THROWS_WITH(train_session(scratch / "words", tiny(), -1, "last", "input@2"),
                    containing("whole numbers only"));
}

TEST_CASE("non-finite search: a value that grows out of range names the module that computed it") {
  Scratch scratch;
  // The first step throws every weight far out; the second computes with them.
  const std::string said = message(
      scratch / "run",
      tiny({{"train.learning_rate", "1e30"}, {"train.schedule", "constant"}, {"train.warmup_steps", "0"}}));
  CHECK_THAT(said, containing("at step 2: first bad value in "));
  CHECK_THAT(said, containing(".blocks.0."));
  CHECK_THAT(said, containing("the result of "));
}

TEST_CASE("non-finite search: steps that are skipped change nothing, are counted, and resume exactly") {
  Scratch scratch;
  const Settings skip{{"train.on_nan", "skip"}, {"train.validate_every", "3"}};
  const TrainResult whole = train_session(scratch / "whole", tiny(skip), -1, "last", "gradient@5");
  CHECK(whole.step == 12);
  CHECK(whole.skipped == 1);
  const std::set<std::string> metrics = metrics_of(scratch / "whole");
  CHECK(metrics.contains("skipped 5 1"));
  CHECK(!metrics.contains("loss 5 nan"));
  CHECK(metrics_of(scratch / "whole").count("loss 6 nan") == 0);
  // Stopped after the step that was skipped, and gone on with in another session.
  // Step 5 asks for its two batches three times: to compute, to look into them, and to compute again.
  CHECK(train_session(scratch / "pieces", tiny(skip), 15, "last", "gradient@5").step == 6);
  const TrainResult pieces = train_session(scratch / "pieces", tiny(skip));
  CHECK(pieces.skipped == 1);
  check_same(scratch / "whole", scratch / "pieces", 12);
  // The weights of the step before are those after it.
  Settings every = skip;
  every.emplace_back("train.checkpoint_every", "1");
  every.emplace_back("train.keep_checkpoints", "20");
  train_session(scratch / "every", tiny(every), -1, "last", "gradient:inf@5");
  CHECK((bytes_of(scratch / "every", 4, "model.safetensors") ==
         bytes_of(scratch / "every", 5, "model.safetensors")));
  CHECK((bytes_of(scratch / "every", 4, "optim.safetensors") ==
         bytes_of(scratch / "every", 5, "optim.safetensors")));
  CHECK((bytes_of(scratch / "every", 5, "model.safetensors") !=
         bytes_of(scratch / "every", 6, "model.safetensors")));
}

TEST_CASE("non-finite search: a skipped step leaves buffers as they were too") {
  Scratch scratch;
  struct Case {
    const char *attention, *fault, *buffer;
  };
  for (const Case& one : std::vector<Case>{{"routing", "input@5", "centroids"},
                                           {"routing", "gradient@5", "centroids"},
                                           {"hard:mode=sample", "gradient@5", "baseline"}}) {
    for (const char* watched : {"false", "true"}) {
      CAPTURE(one.attention, one.fault, watched);
      const Path run = scratch / "run";
      const TrainResult outcome = train_session(run,
                                                digits_config({{"attention.encoder", one.attention},
                                                               {"model.dropout", "0"},
                                                               {"train.on_nan", "skip"},
                                                               {"train.detect_anomaly", watched},
                                                               {"train.checkpoint_every", "1"},
                                                               {"train.keep_checkpoints", "20"}}),
                                                -1, "last", one.fault);
      CHECK(outcome.step == 12);
      CHECK(outcome.skipped == 1);
      const std::string before = bytes_of(run, 4, "model.safetensors");
      CHECK_THAT(before, containing(one.buffer));
      CHECK((bytes_of(run, 5, "model.safetensors") == before));
      CHECK((bytes_of(run, 6, "model.safetensors") != before));
      io::remove_all(run);
    }
  }
}

TEST_CASE(
    "anomaly: buffers that are not finite are no good checkpoint, and leaving steps out does not mend them") {
  Scratch scratch;
  const auto config = [](const Settings& more = {}) {
    Settings all{{"attention.encoder", "routing"}, {"model.dropout", "0"}};
    all.insert(all.end(), more.begin(), more.end());
    return digits_config(all);
  };
  const std::string fault = "buffer:encoder.blocks.0.attention.centroids@3";
  // The validation of step 3 and a save come next.
  CHECK_THAT(message(scratch / "saved", config(), fault),
             containing("the weights stopped being finite at step 3: first bad value in ") &&
                 containing("centroids (nan): a buffer, "));
  CHECK(list_checkpoints(scratch / "saved").empty());
  CHECK_THAT(
      message(scratch / "skipped", config({{"train.on_nan", "skip"}, {"train.validate_every", "12"}}), fault),
      containing("at step 4") && containing("The weights themselves are not finite"));
}

TEST_CASE("non-finite search: skipping ends where it cannot help") {
  Scratch scratch;
  CHECK_THAT(message(scratch / "weights", tiny({{"train.on_nan", "skip"}}), "parameter@5"),
             containing("The weights themselves are not finite"));
  const std::string said = message(
      scratch / "row", digits_config({{"train.on_nan", "skip"}, {"train.skip_limit", "3"}}), "input@4+");
  CHECK_THAT(said, containing("at step 6"));
  CHECK_THAT(said, containing("3 steps in a row were left out (train.skip_limit)"));
  CHECK(list_checkpoints(scratch / "row").back() == 3);
}

TEST_CASE("non-finite search: with --detect-anomaly every op is watched") {
  Scratch scratch;
  const TrainResult fine = train_session(scratch / "fine", tiny({{"train.detect_anomaly", "true"}}));
  train_session(scratch / "whole", tiny());
  CHECK(fine.step == 12);
  CHECK((bytes_of(scratch / "fine", 12, "model.safetensors") ==
         bytes_of(scratch / "whole", 12, "model.safetensors")));
  const std::string said =
      message(scratch / "run", digits_config({{"train.detect_anomaly", "true"}}), "input@5");
  CHECK_THAT(said,
             containing("the loss became nan at step 5: first bad value in patches (nan): the result of "));
  const TrainResult skipped = train_session(
      scratch / "skip", digits_config({{"train.detect_anomaly", "true"}, {"train.on_nan", "skip"}}), -1,
      "last", "input@5");
  CHECK(skipped.step == 12);
  CHECK(skipped.skipped == 1);
}

TEST_CASE("non-finite search: the plan of a fault is read or refused") {
  const FaultInjection fault("gradient:decoder.norm.gain:-inf@12");
  CHECK(fault.where == FaultInjection::Where::gradient);
  CHECK(fault.name == "decoder.norm.gain");
  CHECK(fault.value == -HUGE_VAL);
  CHECK((fault.step == 12 && !fault.repeats));
  CHECK(FaultInjection("input@4+").repeats);
  for (const char* wrong : {"", "parameter", "weights@3", "@3", "parameter@", "parameter@0", "parameter@-1",
                            "parameter@3x", "parameter@99999999999999999999", "parameter::nan@3",
                            "parameter:a:b@3", "input:name@3", "nowhere@2"}) {
    CAPTURE(wrong);
    CHECK_THROWS_WITH(FaultInjection(wrong),
                      containing("parameter@STEP, input@STEP, gradient@STEP or buffer@STEP"));
  }
  Scratch scratch;
  CHECK_THROWS_WITH(train_session(scratch / "run", tiny(), -1, "last", "parameter:encoder.norm.gian@1"),
                    containing("Did you mean 'encoder.norm.gain'?"));
}
