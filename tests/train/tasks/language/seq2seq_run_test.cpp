// Runs of recurrent translators: every cross-attention in every wiring, scores, maps, resuming, and errors.
#include <cmath>

#include "heed/attention/variant.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/small_run.h"
#include "heed/train/commands/command.h"
#include "heed/train/program.h"
#include "heed/train/tasks/map_provider.h"

using namespace heed;

namespace {

Settings recurrent(const std::string& cell, const std::string& wiring, const std::string& cross,
                   const std::string& feeding = "true") {
  return {{"model.kind", "seq2seq"},
          {"model.cell", cell},
          {"model.wiring", wiring},
          {"model.input_feeding", feeding},
          {"attention.cross", cross}};
}

Config small(Settings more, const Settings& and_more = {}) {
  more.insert(more.end(), and_more.begin(), and_more.end());
  return tiny(more);
}

/// A model with data, before its first step.
struct Fresh {
  explicit Fresh(Config made) : config(std::move(made)), rng(1) {
    config.task->load(config, {}, [](const std::string&) {});
    config.task->plan(0);
    model = new_model(config, rng);
  }
  Config config;
  Rng rng;
  std::unique_ptr<Module> model;
};

std::string message_of(const Settings& settings) {
  try {
    tiny(settings);
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::usage);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("seq2seq: every cross-attention that goes step by step learns, translates and shows its map") {
  for (const Variant& variant : variants()) {
    const Traits& traits = variant.traits;
    if (!traits.cross || !traits.padding) continue;
    for (const std::string wiring : {"bahdanau", "luong"}) {
      CAPTURE(traits.name, wiring);
      if (!traits.steps) {
        CHECK_THROWS_WITH(Fresh(small(recurrent("lstm", wiring, traits.name))), containing("step by step"));
        continue;
      }
      Fresh run(small(recurrent(wiring == "luong" ? "gru" : "lstm", wiring, traits.name),
                      {{"data.num_examples", "60"}}));
      AuxiliaryLosses terms;
      const Tensor loss =
          run.config.task->loss(*run.model, run.config.task->batch(0), {.rng = &run.rng, .losses = &terms});
      CHECK(std::isfinite(loss.item()));
      check_listed(*run.model, terms.list.empty() ? loss : loss + terms.sum());
      backward(loss);
      for (const DecodeOptions& decode : {DecodeOptions{}, DecodeOptions{.beam_size = 3}}) {
        const Evaluation scored = run.config.task->test(*run.model, decode);
        for (const auto& [name, value] : scored.scores.list) CHECK(std::isfinite(value));
      }
      if (traits.map == MapKind::none || traits.map == MapKind::stages) continue;
      std::string caption;
      const std::vector<MapView> maps =
          map_provider(*run.config.task).maps(*run.model, "The old man smiles.", caption);
      REQUIRE(maps.size() == 1);
      check(maps[0]);
      CHECK(maps[0].kind == "cross");
      CHECK(maps[0].name == "decoder.cross");
      CHECK(maps[0].heads == 2);
      CHECK(maps[0].keys == static_cast<int64_t>(maps[0].key_tokens.size()));
      if (traits.map != MapKind::exact) continue;
      for (int64_t query = 0; query < maps[0].queries; ++query) {
        double sum = 0;
        for (int64_t key = 0; key < maps[0].keys; ++key) sum += maps[0].at(0, query, key);
        // local_m sees nothing from a place further than its window of 10 past the end of the source.
        const bool apart = std::string(traits.name) == "local_m" && query - 10 >= maps[0].keys;
        CHECK(sum == Approx(apart ? 0 : 1).margin(1e-4));
      }
    }
  }
}

TEST_CASE("seq2seq: a fixed context learns, translates by beams too, and has no map") {
  for (const std::string wiring : {"sutskever", "cho"}) {
    CAPTURE(wiring);
    Fresh run(small(recurrent("lstm", wiring, "none"), {{"data.num_examples", "60"}}));
    const Tensor loss = run.config.task->loss(*run.model, run.config.task->batch(0), {.rng = &run.rng});
    check_listed(*run.model, loss);
    backward(loss);
    for (const DecodeOptions& decode : {DecodeOptions{}, DecodeOptions{.beam_size = 3}}) {
      const Evaluation scored = run.config.task->test(*run.model, decode);
      for (const auto& [name, value] : scored.scores.list) CHECK(std::isfinite(value));
      CHECK(scored.sentences.size() == 8);
    }
    std::string caption;
    CHECK(map_provider(*run.config.task).maps(*run.model, "The old man smiles.", caption).empty());
    CHECK_THAT(caption, containing("The old man smiles."));
  }
}

TEST_CASE("seq2seq: greedy decoding is the most probable word of one call, step after step") {
  Fresh run(small(recurrent("lstm", "luong", "additive"), {{"model.dropout", "0"}}));
  const auto& model = dynamic_cast<const TranslationModel&>(*run.model);
  const NoGrad quiet;
  const Batch batch = run.config.task->batch(0);
  const Tensor encoded = model.encode(batch.tensors[0], batch.tensors[1], {});
  const Tensor full = model.logits(model.decode(batch.tensors[2], encoded, batch.tensors[1], {}));
  Decoding state = model.start(encoded, batch.tensors[1]);
  const int64_t words = full.extent(2);
  for (int64_t t = 0; t < full.extent(1); ++t) {
    const std::vector<float> one = model.next(view::slice(batch.tensors[2], 1, t, t + 1), state).to_host();
    const std::vector<float> all = view::slice(full, 1, t, t + 1).to_host();
    for (size_t i = 0; i < static_cast<size_t>(words); ++i) CHECK(one[i] == Approx(all[i]).margin(1e-4));
  }
}

TEST_CASE("seq2seq: a resumed run is bit-identical to an uninterrupted one") {
  for (const Settings& settings :
       {recurrent("lstm", "bahdanau", "additive"), recurrent("gru", "luong", "softmax"),
        recurrent("lstm", "luong", "dot", "false"), recurrent("lstm", "cho", "none")}) {
    const auto config = [&] { return small(settings, {{"model.layers", "2"}, {"train.max_steps", "6"}}); };
    Scratch scratch;
    const TrainResult whole = train_session(scratch / "whole", config());
    CHECK(whole.step == 6);
    const int before = threads();
    set_threads(before == 2 ? 3 : 2);
    CHECK(train_session(scratch / "pieces", config(), 5).stopped_by != 0);
    set_threads(1);
    CHECK(train_session(scratch / "pieces", config()).step == 6);
    set_threads(before);
    check_same(scratch / "whole", scratch / "pieces", 6);
  }
}

TEST_CASE("seq2seq: what makes no sense is refused in words") {
  CHECK_THAT(message_of({{"model.cell", "gru"}}), containing("model.cell") && containing("--model seq2seq"));
  CHECK_THAT(message_of({{"model.wiring", "luong"}}), containing("model.wiring"));
  CHECK_THAT(message_of({{"model.bidirectional", "false"}}), containing("model.bidirectional"));
  CHECK_THAT(message_of({{"model.kind", "seq2seq"}, {"attention.encoder", "linear"}}),
             containing("attention.encoder = linear") && containing("no self-attention"));
  CHECK_THAT(message_of({{"model.kind", "seq2seq"}, {"model.input_feeding", "false"}}),
             containing("model.input_feeding = false") && containing("--wiring luong"));
  CHECK_THAT(message_of({{"model.kind", "seq2seq"}, {"model.d_model", "9"}, {"model.heads", "3"}}),
             containing("model.d_model = 9 is odd"));
  CHECK_THAT(
      message_of({{"model.kind", "seq2seq"}, {"model.wiring", "cho"}, {"model.input_feeding", "false"}}),
      containing("with cho nothing is fed back"));
  for (const Settings& none : {Settings{}, Settings{{"model.kind", "seq2seq"}, {"model.wiring", "luong"}}}) {
    Settings settings = none;
    settings.emplace_back("attention.cross", "none");
    CHECK_THAT(message_of(settings),
               containing("attention.cross = none") && containing("--wiring sutskever"));
  }
  CHECK_THAT(message_of({{"attention.encoder", "none"}}), containing("attention.encoder"));
  Config fixed = make_config("translate-seq2seq");  // whose own cross-attention is left as it is
  fixed.set("model.wiring", "cho", "");
  fixed.check();
  fixed.set("attention.cross", "dot", "--cross-attention: ", SetBy::command_line);
  CHECK_THROWS_WITH(fixed.check(), containing("model.wiring = cho has no attention"));
  CHECK_THAT(message_of({{"model.kind", "seqtoseq"}}), containing("transformer") && containing("seq2seq"));
  Config other = make_config("lm");
  other.set("model.kind", "seq2seq", "--model: ");
  CHECK_THROWS_WITH(other.check(), containing("the task is lm"));
  Config asked = make_config("translate");
  ParsedArguments arguments;
  arguments.options = {{"model", {"seq2seq"}}, {"norm", {"post"}}, {"cell", {"gru"}}};
  apply_settings(asked, arguments);
  CHECK(asked.model.kind == ModelKind::seq2seq);
  CHECK(asked.model.recurrent.cell == CellKind::gru);
  CHECK_THROWS_WITH(asked.check(), containing("model.norm is of transformers"));
  Config convolved = make_config("translate");
  arguments.options = {{"model", {"seq2seq"}}, {"short-convolution", {"4"}}};
  apply_settings(convolved, arguments);
  CHECK_THROWS_WITH(convolved.check(), containing("model.short_convolution is of transformers"));
  ParsedArguments show;  // where --model is a flag
  show.options = {{"model", {}}};
  Config plain = make_config("translate");
  apply_settings(plain, show);
  CHECK(plain.model.kind == ModelKind::transformer);
}
