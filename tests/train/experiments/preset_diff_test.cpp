// Differences to presets: which settings differ, their text, and the manifest.
#include "heed/train/experiments/preset_diff.h"

#include <cstdlib>

#include "heed/core/io/files.h"
#include "heed/tests/train/shell.h"

using namespace heed;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

Config made(const std::string& preset, const Settings& settings = {}) {
  Config config = make_config(preset);
  for (const auto& [key, value] : settings) config.set(key, value, "");
  return config;
}

}  // namespace

TEST_CASE("choices: a setting is changed when its value is another, whoever said so") {
  Config plain = made("lra-image-skyformer");
  CHECK(changed_settings(plain).empty());
  CHECK(changed_words(plain).empty());
  Config same = made("lra-image-skyformer", {{"data.pixel_zero", "pad"}, {"train.learning_rate", "0.0001"}});
  CHECK(changed_words(same).empty());
  Config two = made("lra-image-skyformer", {{"train.batch_size", "2"}, {"data.pixel_zero", "token"}});
  CHECK(changed_words(two) == "data.pixel_zero token (recipe: pad), train.batch_size 2 (recipe: 256)");
  Config other = made("translate", {{"data.path", "pairs.tsv"}});
  CHECK(changed_words(other) == "data.path pairs.tsv (preset: none)");
  // The environment is not the preset.
  ::setenv("HEED_TRAIN_SEED", "7", 1);
  Config surrounded = made("lra-image");
  CHECK(changed_words(surrounded) == "train.seed 7 (recipe: 1)");
  ::unsetenv("HEED_TRAIN_SEED");
  // A file that goes on from a preset, and what a run folder holds.
  Config kept = read_config(to_toml(two), "config.toml");
  CHECK(changed_words(kept) == changed_words(two));
  // A preset that there no longer is tells nothing; the run can still be opened.
  kept.preset = "lra-image-former";
  CHECK(changed_settings(kept).empty());
}

TEST_CASE("choices: a page has what was changed in the preset, or in the defaults where there is none") {
  Config two = made("lra-image-skyformer", {{"train.batch_size", "2"}});
  const ReportSettings changed = settings_of(two);
  CHECK(changed.from == "preset lra-image-skyformer");
  REQUIRE(changed.changed.size() == 1);
  CHECK(changed.changed[0].key == "train.batch_size");
  CHECK((changed.changed[0].value == "2" && changed.changed[0].before == "256"));
  CHECK(changed.all == to_toml(two));
  Config file = parse_config("task = \"recall\"\n[train]\nmax_steps = 7\n", "my.toml");
  const ReportSettings own = settings_of(file);
  CHECK(own.from == "defaults of recall");
  REQUIRE_FALSE(own.changed.empty());
  CHECK(own.changed.front().key == "train.max_steps");
}

TEST_CASE("choices: the facts name preset, recipe, what recipes disagree on, and what was changed") {
  Config image = made("lra-image-skyformer", {{"data.pixel_zero", "token"}});
  const Json metadata = settings_facts(image);
  CHECK(metadata.at("preset").text() == "lra-image-skyformer");
  CHECK(metadata.at("recipe").text() == "skyformer");
  for (const auto& [key, value] : Settings{{"data.pixel_zero", "token"},
                                           {"model.position", "learned"},
                                           {"model.pool", "mean"},
                                           {"data.mean_over", "padded"},
                                           {"train.grad_clip_value", "1"}})
    CHECK(metadata.at("choices").at(key).text() == value);
  CHECK(metadata.at("choices").find("model.pair_head") == nullptr);
  REQUIRE(metadata.at("changed").members().size() == 1);
  CHECK(metadata.at("changed").at("data.pixel_zero").at("value").text() == "token");
  CHECK(metadata.at("changed").at("data.pixel_zero").at("preset").text() == "pad");

  Config pairs = made("lra-retrieval-google"), tiny = made("lra-text"), other = made("translate");
  CHECK(settings_facts(pairs).at("choices").at("model.pair_head").text() == "concat");
  CHECK(settings_facts(pairs).at("choices").at("model.pool").text() == "first");
  CHECK(settings_facts(tiny).at("recipe").text() == "tiny");
  CHECK(settings_facts(other).at("preset").text() == "translate");
  CHECK(settings_facts(other).find("recipe") == nullptr);
  CHECK(settings_facts(other).find("choices") == nullptr);
  // Without a preset there is nothing to compare with, but the choices are made.
  tiny.preset.clear();
  CHECK(settings_facts(tiny).find("changed") == nullptr);
  CHECK(settings_facts(tiny).at("choices").at("model.pool").text() == "mean");
}

TEST_CASE("choices: a run says at its start and in its manifest what is not the recipe") {
  const Shell shell;
  const Result trained = shell.run({"train", "lra-image", "--recipe", "skyformer", "--pixel-zero", "token",
                                    "--name", "b", "--batch-size", "2", "--steps", "1", "--data.num_examples",
                                    "20", "--data.test_size", "4", "--data.validation", "4"});
  CAPTURE(trained.err);
  REQUIRE(trained.code == 0);
  CHECK_THAT(trained.err, containing("\n  changed     data.") &&
                              containing("data.pixel_zero token (recipe: pad), ") &&
                              containing("train.batch_size 2 (recipe: 256)"));
  const Path run = shell.scratch / "runs" / "b";
  const Json settings = parse_json(io::read(run / "manifest.json"), "manifest").at("settings");
  CHECK(settings.at("recipe").text() == "skyformer");
  CHECK(settings.at("choices").at("data.pixel_zero").text() == "token");
  CHECK(settings.at("changed").at("train.batch_size").at("preset").text() == "256");
}
