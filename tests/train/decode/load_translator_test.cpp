// A run's checkpoint, opened for translating.
#include "heed/train/decode/load_translator.h"

#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/small_run.h"
#include "heed/train/decode/translator.h"

using namespace heed;

TEST_CASE("load_translator: it translates as the run's own model does") {
  const Scratch scratch;
  const Path run = scratch / "run";
  train_session(run, tiny());
  const LoadedRun same = load_run(run, {.checkpoint = "last"});
  const auto* model = dynamic_cast<const TranslationModel*>(same.model.get());
  REQUIRE(model != nullptr);
  const Translator translator = load_translator(run, "last");
  const std::vector<std::string> sentences{"Anna reads the book.", "", "The dog runs."};
  const std::vector<std::string> words = translator.translate(sentences);
  const Tokenizer& target = translator.target ? *translator.target : *translator.source;
  CHECK(words == translate_all(*model, sentences, *translator.source, target, same.config.model.max_length,
                               same.config.decode));
  CHECK(words[1].empty());
  CHECK(translator.translate("The dog runs.") ==
        translator.translate(std::vector<std::string>{"The dog runs."})[0]);
  CHECK(save_bytes(*load_translator(run).module) ==
        io::read(checkpoint_folder(run, best_step(run).value()) / "model.safetensors"));
}

TEST_CASE("load_translator: what is no translator is refused") {
  const Scratch scratch;
  CHECK(fault_of([&] { load_translator(scratch / "nowhere"); }) == Fault::file);
  Config config = make_config("recall");
  for (const auto& [key, value] : Settings{{"train.max_steps", "2"},
                                           {"train.batch_size", "4"},
                                           {"data.validation", "4"},
                                           {"model.d_model", "16"},
                                           {"model.heads", "2"}})
    config.set(key, value, "");
  train_session(scratch / "recall", std::move(config));
  CHECK_THROWS_WITH(load_translator(scratch / "recall"),
                    containing("of the task recall, not of a translator"));
}
