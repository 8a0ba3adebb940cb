// Settings: presets, files, environment, command line, and errors.
#include "heed/train/config/config.h"

#include <bit>
#include <cmath>
#include <cstdlib>

#include "heed/core/io/files.h"
#include "heed/data/text/text.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/train/program.h"
#include "heed/train/tasks/task.h"

using namespace heed;

namespace {

std::map<std::string, std::string> values_of(Config& config) {
  std::map<std::string, std::string> out;
  for (const OptionText& option : options_of(config)) out[option.name] = option.value;
  return out;
}

/// An environment variable that goes away with the object.
struct Variable {
  Variable(const char* variable, const char* value) : name(variable) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name); }
  const char* name;
};

std::string message_of(const Path& path, const std::string& content) {
  io::write(path, content);
  try {
    make_config(path.string()).check();
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::usage);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("config: every preset can be read, checked, written and read again") {
  CHECK(presets().size() >= 6);
  for (const Preset& preset : presets()) {
    CAPTURE(preset.name);
    Config config = make_config(preset.name);
    config.check();
    CHECK(config.task_name == preset.task);
    CHECK(config.preset == preset.name);
    Config again = read_config(to_toml(config), "config.toml");
    CHECK(values_of(again) == values_of(config));
    CHECK(again.preset == preset.name);
    CHECK(again.task_name == preset.task);
    CHECK(to_toml(again) == to_toml(config));
  }
}

TEST_CASE("config: a copy of a preset's file trains as the preset does") {
  Scratch scratch;
  const Path copy = scratch / "my.toml";
  for (const Preset& preset : presets()) {
    CAPTURE(preset.name);
    CHECK_FALSE(preset.about.empty());
    io::write(copy, preset.toml);
    Config config = make_config(copy.string()), original = make_config(preset.name);
    CHECK(config.task_name == preset.task);
    CHECK(values_of(config) == values_of(original));
  }
}

TEST_CASE("config: a file may follow a recipe") {
  Scratch scratch;
  const Path path = scratch / "my.toml";
  io::write(path, "preset = \"lra-text\"\nrecipe = \"google\"\n[train]\nseed = 5\n");
  Config config = make_config(path.string());
  CHECK(config.preset == "lra-text-google");
  CHECK(config.train.max_steps == 20000);
  CHECK(config.train.seed == 5);
  io::write(path, "task = \"lra-text\"\nrecipe = \"skyformer\"\n[train]\nepochs = 3\n");
  config = make_config(path.string());
  CHECK(config.preset.empty());
  CHECK(config.model.d_model == 64);  // a setting of nystrom, on which skyformer is based
  CHECK(config.train.optimizer.grad_clip_value == 1);
  CHECK(config.train.epochs == 3);
  CHECK(config.train.max_steps == 0);
  CHECK(config.origin.at("model.d_model").words == "recipe skyformer");
  CHECK_THAT(message_of(path, "task = \"lra-text\"\nrecipe = \"gogle\"\n"),
             containing("my.toml:2:10: recipe 'gogle' is unknown. Did you mean 'google'?"));
  CHECK_THAT(message_of(path, "preset = \"lra-text\"\nrecipe = \"gogle\"\n"),
             containing("my.toml:2:10: --recipe gogle is unknown. Did you mean 'google'?"));
  CHECK_THAT(message_of(path, "task = \"lra-text\"\nrecipe = 5\n"),
             containing("my.toml:2:10: recipe must be"));
}

TEST_CASE("config: what is awkward in TOML comes back from it too") {
  Config config = make_config("translate");
  config.train.schedule.learning_rate = 1.0 / 3;
  config.train.optimizer.epsilon = 1e-300;
  config.train.seed = INT64_MAX;
  for (const std::string path : {"a \"b\" \\ c", "tab\there", "line\nbreak", "delete\x7f", "perché", ""}) {
    CAPTURE(path);
    config.set("data.path", path, "");
    Config again = read_config(to_toml(config), "config.toml");
    CHECK(values_of(again) == values_of(config));
  }
}

TEST_CASE("config: any UTF-8 comes back from TOML, in every setting that is text") {
  Config config = make_config("translate");
  std::vector<std::string> hostile = {"\xEF\xBB\xBFmark first",
                                      "\"\"\"",
                                      "'''",
                                      "\\",
                                      "ends in \\",
                                      "\\u0041",
                                      "#",
                                      "[train]",
                                      "a\r\nb = 1\r\n",
                                      "\\\n  \xEF\xB7\xB7",
                                      std::string("a\0b", 3)};
  std::string controls;
  for (char letter = 1; letter < 0x20; ++letter) controls += letter;
  hostile.push_back(controls + "\x7F");
  // Ends of ranges, C1 controls, line and direction marks, what toml++ stumbles over, no characters.
  for (const char32_t code : {0x80, 0x85, 0x9B, 0xA0, 0x7FF, 0x800, 0x2028, 0x202E, 0x2066, 0xD7FF, 0xE000,
                              0xFDF7, 0xFEFF, 0xFFFD, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF}) {
    std::string letter;
    append_code_point(letter, code);
    hostile.push_back(letter);
    hostile.push_back("a" + letter + " " + letter + "1");
  }
  for (const std::string& value : hostile) {
    CAPTURE(value);
    for (const OptionText& option : options_of(config)) {
      if (option.kind == "text") config.set(option.name, value, "");
    }
    const std::string written = to_toml(config);
    Config again = read_config(written, "config.toml");
    CHECK(values_of(again) == values_of(config));
    CHECK(to_toml(again) == written);
  }
}

TEST_CASE("config: text that is not UTF-8 is refused with its bytes, wherever it comes from") {
  const auto told = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      CHECK(error.fault() == Fault::usage);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  Config config = make_config("lm");
  const std::string before = to_toml(config);
  CHECK_THAT(told([&] { config.set("data.path", "d\xC3\xA9/caf\xE9.txt", "--data: "); }),
             containing("--data: data.path = 'd\xC3\xA9/caf\\xE9.txt' is not UTF-8 at its byte 8"));
  // Cut short, overlong, a surrogate, beyond the last.
  for (const char* bad : {"\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80"})
    CHECK_THAT(told([&] { config.set("data.path", bad, ""); }), containing("is not UTF-8 at its byte 1"));
  CHECK(to_toml(config) == before);
  const Variable variable("HEED_DATA_PATH", "caf\xE9.txt");
  CHECK_THAT(told([] { make_config("lm"); }), containing("HEED_DATA_PATH: data.path = 'caf\\xE9.txt'"));
}

TEST_CASE("config: every double comes back from TOML bit for bit") {
  // Floats among them, whose own shortest text is of another double: 2^-13 as 0.00012207031.
  std::vector<double> all{
      0x1p-13, 0.1F,   0.3F,   1e-4,    1.0 / 3, 0.5, 3,    1e15, 1e22, 9007199254740993.0,
      1e18,    5e-324, 1e-300, 0x1p70F, 1e38F,   0.0, -0.0, -7};
  uint64_t bits = 1;
  for (int i = 0; i < 2000; ++i) {
    bits = bits * 6364136223846793005U + 1442695040888963407U;
    const double value = std::bit_cast<double>(bits);
    if (!std::isfinite(value)) continue;
    all.push_back(value);
    if (const auto narrow = static_cast<float>(value); std::isfinite(narrow)) all.push_back(narrow);
  }
  Config config = make_config("recall");
  for (const double value : all) {
    CAPTURE(value);
    config.train.schedule.learning_rate = value;
    config.decode.length_penalty = -value;
    const std::string written = to_toml(config);
    Config again = read_config(written, "config.toml");
    CHECK(std::bit_cast<uint64_t>(again.train.schedule.learning_rate) == std::bit_cast<uint64_t>(value));
    CHECK(std::bit_cast<uint64_t>(again.decode.length_penalty) == std::bit_cast<uint64_t>(-value));
    CHECK((to_toml(again) == written));
  }
}

TEST_CASE("config: a written file trains the same run again") {
  Scratch scratch;
  Config config = make_config("mnist");
  config.set("train.epochs", "7", "");
  io::write(scratch / "again.toml", to_toml(config));
  Config again = make_config((scratch / "again.toml").string());
  CHECK(values_of(again) == values_of(config));
}

TEST_CASE("config: preset, then file, then environment, then option, then --set") {
  Scratch scratch;
  const Path file = scratch / "mine.toml";
  io::write(file,
            "preset = \"translate\"\n[train]\nlearning_rate = 0.11\nwarmup_steps = 11\ngrad_clip = "
            "0.11\nseed = 11\n");
  const Variable rate("HEED_TRAIN_WARMUP_STEPS", "12"), clip("HEED_TRAIN_GRAD_CLIP", "0.12"),
      seed("HEED_TRAIN_SEED", "12");
  Config config = make_config(file.string());
  ParsedArguments arguments;
  arguments.options = {
      {"grad-clip", {"0.13"}}, {"seed", {"13"}}, {"set", {"train.seed=14", "model.d_model=96"}}};
  apply_settings(config, arguments);
  CHECK(config.train.label_smoothing == 0.05);  // preset
  CHECK(config.train.schedule.learning_rate == 0.11);
  CHECK(config.train.schedule.warmup_steps == 12);
  CHECK(config.train.optimizer.grad_clip == 0.13);
  CHECK(config.train.seed == 14);
  CHECK(config.model.d_model == 96);
  CHECK(config.origin.at("train.label_smoothing").words == "preset translate");
  CHECK_THAT(config.origin.at("train.learning_rate").words, containing("mine.toml:3"));
  CHECK_THAT(config.origin.at("train.warmup_steps").words, containing("HEED_TRAIN_WARMUP_STEPS"));
  CHECK_THAT(config.origin.at("train.grad_clip").words, containing("--grad-clip"));
  CHECK_THAT(config.origin.at("train.seed").words, containing("--set"));
  CHECK(!config.origin.contains("train.patience"));
}

TEST_CASE("config: a length in one unit replaces a preset's in the other") {
  const auto with = [](const std::string& preset, std::map<std::string, std::vector<std::string>> options) {
    Config config = make_config(preset);
    ParsedArguments arguments;
    arguments.options = std::move(options);
    apply_settings(config, arguments);
    config.check();
    return std::pair{config.train.max_steps, config.train.epochs};
  };
  CHECK(with("mnist", {{"steps", {"5"}}}) == std::pair<int64_t, int64_t>{5, 0});
  CHECK(with("translate", {{"epochs", {"3"}}}) == std::pair<int64_t, int64_t>{0, 3});
  CHECK(with("mnist", {{"set", {"train.max_steps=5"}}}) == std::pair<int64_t, int64_t>{5, 0});
  CHECK_THROWS_WITH(with("translate", {{"epochs", {"3"}}, {"steps", {"5"}}}), containing("Set one of them"));
  CHECK(with("mnist", {{"train.max_steps", {"5"}}}) == std::pair<int64_t, int64_t>{5, 0});
  CHECK(with("translate", {{"train.epochs", {"3"}}}) == std::pair<int64_t, int64_t>{0, 3});
  CHECK(with("mnist", {{"steps", {"5"}}, {"epochs", {"0"}}}) == std::pair<int64_t, int64_t>{5, 0});
  CHECK(with("mnist", {{"steps", {"5"}}, {"set", {"train.epochs=3"}}}) == std::pair<int64_t, int64_t>{0, 3});
  CHECK_THROWS_WITH(with("mnist", {{"set", {"train.max_steps=5", "train.epochs=3"}}}),
                    containing("Set one of them"));
  {
    const Variable steps("HEED_TRAIN_MAX_STEPS", "5");
    CHECK(with("mnist", {}) == std::pair<int64_t, int64_t>{5, 0});
    CHECK(with("mnist", {{"epochs", {"3"}}}) == std::pair<int64_t, int64_t>{0, 3});
    const Variable epochs("HEED_TRAIN_EPOCHS", "3");
    CHECK_THROWS_WITH(with("mnist", {}), containing("Set one of them"));
  }
  const Scratch scratch;
  const std::string file = (scratch / "five.toml").string();
  io::write(file, "preset = \"mnist\"\n[train]\nmax_steps = 5\n");
  CHECK(with(file, {}) == std::pair<int64_t, int64_t>{5, 0});
  io::write(file, "preset = \"mnist\"\n[train]\nmax_steps = 0\n");
  CHECK(with(file, {}) == with("mnist", {}));
}

TEST_CASE("config: mistakes in a file are named with file, line, column and the nearest key") {
  Scratch scratch;
  const Path file = scratch / "my.toml";
  const std::string head = "preset = \"translate\"\n[train]\n";
  std::string said = message_of(file, head + "seeed = 3\n");
  CHECK_THAT(said, containing("my.toml:3:9: option 'train.seeed' is unknown. Did you mean 'train.seed'?"));
  said = message_of(file, head + "seed = \"3e-4\"\n");
  CHECK_THAT(said, containing("my.toml:3:8: train.seed = \"3e-4\" is text; a number is needed. "
                              "Write it without quotes."));
  said = message_of(file, head + "schedule = \"cosin\"\n");
  CHECK_THAT(said, containing("my.toml:3:12: train.schedule = 'cosin' is unknown. Did you mean 'cosine'?"));
  said = message_of(file, head + "seed = 1.5\n");
  CHECK_THAT(said, containing("my.toml:3:8: train.seed = 1.5 is not legal; it takes a whole number"));
  said = message_of(file, head + "seed = [1, 2]\n");
  CHECK_THAT(said, containing("my.toml:3:8: '[' outside of quotes. A value is a number, a text"));
  said = message_of(file, head + "seed = 0,5\n");
  CHECK_THAT(said, containing("my.toml:3:9: ',' outside of quotes."));
  said = message_of(file, "preset = \"translate\"\ntrain = {seed = 1}\n");
  CHECK_THAT(said, containing("my.toml:2:9: '{' outside of quotes."));
  said = message_of(file, head + "seed = [}\n");  // the parser fails an assertion here
  CHECK_THAT(said, containing("my.toml:3:8: '['"));
  said = message_of(file, head + "seed = 2024-01-01\n");
  CHECK_THAT(said,
             containing("my.toml:3:8: train.seed must be a number, a text in quotes, or true or false"));
  said = message_of(file, head + "seed = \n");
  CHECK_THAT(said, containing("my.toml:3:"));
  said = message_of(file, "[train]\nmax_steps = 3\n");
  CHECK_THAT(said, containing("neither a preset nor a task"));
  said = message_of(file, "preset = \"translat\"\n");
  CHECK_THAT(said, containing("Did you mean 'translate'?"));
  said = message_of(file, "task = \"lmm\"\n");
  CHECK_THAT(said, containing("Did you mean 'lm'?"));
  said = message_of(file, "preset = \"lm\"\ntask = \"mnist\"\n");
  CHECK_THAT(said, containing("task = \"mnist\", but the preset lm is of the task lm"));
  said = message_of(file, head + "max_steps = 3\nepochs = 2\n");
  CHECK_THAT(said, containing("train.max_steps = 3 and train.epochs = 2"));
  said = message_of(file, head + "max_steps = 1e63\n");
  CHECK_THAT(said, containing("my.toml:3:13: train.max_steps = 1e+63"));
  CHECK(fault_of([&] { make_config((scratch / "absent.toml").string()); }) == Fault::file);
}

TEST_CASE("config: values that do not go together are refused with their numbers") {
  const auto refused = [](const std::string& key, const std::string& value) -> std::string {
    Config config = make_config("translate");
    try {
      config.set(key, value, "--set ");
      config.check();
    } catch (const Error& error) {
      CHECK(error.fault() == Fault::usage);
      return error.what();
    }
    return "no error";
  };
  CHECK_THAT(refused("model.heads", "6"), containing("heads = 6"));
  CHECK_THAT(refused("train.grad_accumulation", "0"), containing("train.grad_accumulation = 0"));
  CHECK_THAT(refused("train.batch_tokens", "0"), containing("train.batch_tokens = 0"));
  CHECK_THAT(refused("train.beta2", "1"), containing("below 1"));
  CHECK_THAT(refused("train.learning_rate", "-1"), containing("train.learning_rate = -1"));
  CHECK_THAT(refused("train.learning_rate", "nan"), containing("--set train.learning_rate = nan"));
  CHECK_THAT(refused("train.max_steps", "0"), containing("Set one of them"));
  CHECK_THAT(refused("decode.beam_size", "0"), containing("decode.beam_size = 0"));
  CHECK_THAT(refused("decode.max_extra_tokens", "0"), containing("decode.max_extra_tokens = 0"));
  CHECK_THAT(refused("attention.cross", "softmaxx"), containing("Did you mean 'softmax'?"));
  CHECK_THAT(refused("attention.encoder", "linear:epsiln=1"), containing("epsiln"));
}

TEST_CASE("config: a setting in the environment is refused by its variable's name") {
  const Variable wrong("HEED_MODEL_D_MODEL", "wide");
  CHECK_THROWS_WITH(make_config("lm"), containing("HEED_MODEL_D_MODEL: model.d_model = wide"));
}

TEST_CASE("config: translate-base is the base model of 2017") {
  Config config = make_config("translate-base");
  const std::map<std::string, std::string> values = values_of(config);
  for (const auto& [key, value] : std::map<std::string, std::string>{{"model.kind", "transformer"},
                                                                     {"model.d_model", "512"},
                                                                     {"model.heads", "8"},
                                                                     {"model.d_ff", "2048"},
                                                                     {"model.layers", "6"},
                                                                     {"model.dropout", "0.1"},
                                                                     {"model.norm", "post"},
                                                                     {"model.position", "sinusoid"},
                                                                     {"model.tie_embeddings", "all"},
                                                                     {"data.joint", "true"},
                                                                     {"data.vocabulary", "37000"},
                                                                     {"train.label_smoothing", "0.1"},
                                                                     {"train.warmup_steps", "4000"},
                                                                     {"train.beta2", "0.98"},
                                                                     {"train.epsilon", "1e-09"},
                                                                     {"train.batch_tokens", "25000"},
                                                                     {"train.max_steps", "100000"},
                                                                     {"decode.beam_size", "4"}}) {
    CAPTURE(key);
    CHECK(values.at(key) == value);
  }
  // Equation 3: d^-0.5 min(t^-0.5, t 4000^-1.5), whose peak is at step 4,000.
  const auto rate = [&](int64_t step) { return config.train.schedule.at(step, 100000, 512); };
  CHECK(rate(4000) == Approx(1 / std::sqrt(512.0 * 4000)));
  CHECK(rate(1000) == Approx(rate(4000) / 4));
  CHECK(rate(16000) == Approx(rate(4000) / 2));
}

TEST_CASE("config: translate-conti has the published settings to the letter") {
  Config config = make_config("translate-conti");
  const std::map<std::string, std::string> published{{"model.d_model", "512"},
                                                     {"model.heads", "8"},
                                                     {"model.d_ff", "2048"},
                                                     {"model.layers", "1"},
                                                     {"model.max_length", "350"},
                                                     {"model.dropout", "0.1"},
                                                     {"model.attention_dropout", "0.1"},
                                                     {"model.activation", "relu"},
                                                     {"model.norm", "pre"},
                                                     {"model.norm_scale", "deviation"},
                                                     {"model.norm_epsilon", "1e-06"},
                                                     {"model.position", "sinusoid"},
                                                     {"model.init", "xavier_fan_in"},
                                                     {"model.tie_embeddings", "none"},
                                                     {"model.scale_embedding", "true"},
                                                     {"model.attention_bias", "false"},
                                                     {"model.feed_forward_bias", "true"},
                                                     {"model.norm_bias", "true"},
                                                     {"model.output_bias", "true"},
                                                     {"attention.encoder", "softmax"},
                                                     {"attention.decoder", "softmax"},
                                                     {"attention.cross", "softmax"},
                                                     {"data.tokenizer", "word"},
                                                     {"data.join_with_spaces", "true"},
                                                     {"data.min_frequency", "2"},
                                                     {"data.vocab_size", "30000"},
                                                     {"data.vocabulary_on_all", "true"},
                                                     {"data.deduplicate", "false"},
                                                     {"data.max_length", "0"},
                                                     {"data.validation", "3234"},
                                                     {"data.test_size", "0"},
                                                     {"data.buckets", "false"},
                                                     {"data.fixed_length", "350"},
                                                     {"model.identity_projections", "false"},
                                                     {"train.validate_every", "0"},
                                                     {"train.validate_each_epoch", "true"},
                                                     {"decode.max_extra_tokens", "350"},
                                                     {"decode.allow_unknown", "true"},
                                                     {"train.epochs", "20"},
                                                     {"train.max_steps", "0"},
                                                     {"train.batch_size", "8"},
                                                     {"train.grad_accumulation", "1"},
                                                     {"train.label_smoothing", "0.1"},
                                                     {"train.optimizer", "adam"},
                                                     {"train.schedule", "constant"},
                                                     {"train.learning_rate", "1e-04"},
                                                     {"train.warmup_steps", "0"},
                                                     {"train.beta1", "0.9"},
                                                     {"train.beta2", "0.999"},
                                                     {"train.epsilon", "1e-09"},
                                                     {"train.weight_decay", "0"},
                                                     {"train.grad_clip", "0"},
                                                     {"decode.beam_size", "1"}};
  const auto values = values_of(config);
  for (const auto& [key, value] : published) {
    CAPTURE(key);
    CHECK(values.at(key) == value);
  }
  for (const int64_t step : {1, 1000, 72760}) CHECK(config.train.schedule.at(step, 72760, 512) == 1e-4);
}

TEST_CASE("config: attention_dropout follows dropout until it is set") {
  const auto read = [](const std::string& model) {
    return read_config("task = \"translate\"\n[model]\n" + model, "config.toml");
  };
  const auto in_force = [](Config& config) { return values_of(config).at("model.attention_dropout"); };
  Config config = read("");
  CHECK(in_force(config) == "0.1");
  config.set("model.dropout", "0", "");
  CHECK(config.model.dropout_of_weights() == 0);
  CHECK(in_force(config) == "0");
  config.set("model.attention_dropout", "0.3", "");
  config.set("model.dropout", "0.2", "");
  CHECK(config.model.dropout_of_weights() == 0.3);
  // A file with both, as every run folder has, means both; one that is written holds the value in force.
  Config both = read("dropout = 0.1\nattention_dropout = 0\n");
  CHECK(in_force(both) == "0");
  Config follows = read("dropout = 0.4\n");
  Config again = read_config(to_toml(follows), "config.toml");
  again.set("model.dropout", "0.5", "");
  CHECK(in_force(again) == "0.4");
  CHECK_THROWS_WITH(read("attention_dropout = -0.1\n").check(), containing("model.attention_dropout = -0.1"));
  CHECK_THROWS_WITH(read("attention_dropout = inf\n"), containing("model.attention_dropout = inf"));
}

TEST_CASE("config: bytes that TOML does not know are refused with their place") {
  CHECK_THROWS_WITH(read_config("task = \"lm\"\n[" + std::string(1, '\0') + "model]\n", "a.toml"),
                    containing("a.toml:2:2") && containing("NUL"));
  CHECK_THROWS_WITH(read_config("task = \"lm\"\n# \x01\n", "a.toml"), containing("a.toml:2:3: a control"));
  CHECK_THROWS_WITH(read_config("task = \"l\xFFm\"\n", "a.toml"),
                    containing("a.toml:1:") && containing("UTF-8"));
}

TEST_CASE("config: letters beyond ASCII stand in quotes and comments only") {
  for (const char* bare :
       {"\"\" # x\n\u00E9 = 1\n", "# \u00E9\n\u00E9 = 1\n", "'\\'\n\u00E9", "\"\\\"\"\n\u00E9",
        "\"unclosed\n\u00E9", "\"\"\"a\"\"\"\"\"\n\u00E9", "'''\"'''\n\u00E9"}) {
    CAPTURE(bare);
    CHECK_THROWS_WITH(read_config(bare, "a.toml"),
                      containing("a.toml:2:1: a letter beyond ASCII outside of quotes"));
  }
  for (const char* quoted :
       {"\"\u00E9\\\"\u00E9\"", "'\u00E9\\'", "\"\"\"\n\"\u00E9\"\"\"\"", "'''\u00E9''\n'\u00E9'''"}) {
    CAPTURE(quoted);
    Config config =
        read_config(text("\xEF\xBB\xBFtask = \"lm\" # caff\u00E8\n[data]\npath = ", quoted, "\n"), "a.toml");
    CHECK_THAT(to_toml(config), containing("\u00E9"));
  }
}

TEST_CASE("config: letters beyond ASCII where the parser looks for blanks are refused with their place") {
  const auto refused = [](const std::string& wrong, const char* place, const char* why) {
    CAPTURE(wrong);
    CHECK_THROWS_WITH(read_config("task = \"lm\"\n" + wrong, "a.toml"), containing(place) && containing(why));
  };
  const char* letter = "\uFDF7";
  refused(text("a = \"\"\"x\\ ", letter, "\"\"\"\n"), "a.toml:2:", "line-ending backslashes");
  refused(text("a = \"\"\"x\\", letter, "\"\"\"\n"), "a.toml:2:", "escape sequence");
  refused(text("a = \"\"\"x\\ \t\r\n\n ", letter, "\"\"\"\n"), "a.toml:4:2", "a backslash breaks");
  refused(text("a = 10'", letter, "'\n"), "a.toml:2:", "TOML");
  refused(text("[train'", letter, "']\n"), "a.toml:2:", "TOML");
  // The second reading keeps places.
  refused("# \u00E9\n[train]\nseed = \"\u00E9\"\n", "a.toml:4:8: train.seed", "is text");
  // The letter is not the stand-in that the parser saw.
  CHECK_THROWS_WITH(read_config(text("task = \"lm\"\na = \"\\", letter, "\"\n"), "a.toml"),
                    !containing("'@'"));
  Config config =
      read_config(text("task = \"lm\"\n[data]\npath = \"\"\"@\\\n b\\\\", letter, "\"\"\"\n"), "a.toml");
  CHECK_THAT(to_toml(config), containing(text("@b\\\\", letter)));
}

TEST_CASE("config: a second value in a line is refused with its place") {
  for (const char* wrong : {"pe = 01-------= 1", "seed = 1 2", "seed = 1979-05-27 07:32:00", "a = \"b\" c",
                            "a = '''b\n''' \tc", "a= b =c", "a = \"b\" \"c\""}) {
    CAPTURE(wrong);
    CHECK_THROWS_WITH(read_config(text("task = \"lm\"\n", wrong, "\n"), "a.toml"),
                      containing("a second value in this line"));
  }
  CHECK_THROWS_WITH(read_config("task = \"lm\"\nseed = 1  2\n", "a.toml"), containing("a.toml:2:11: "));
  Config config = read_config(
      "task = \"lm\" # a b\r\n[ train ] # c = d e\nsteps\t =\t3 \t\r\nseed=4# f g\n"
      "[data]\n path = \"\"\"h = i j\nk l\"\"\" # m n\n",
      "a.toml");
  CHECK(config.train.max_steps == 3);
  CHECK(config.train.seed == 4);
  CHECK_THAT(to_toml(config), containing("h = i j"));
}

TEST_CASE("config: a name of many dots is refused with its place before the parser sees it") {
  const Scratch scratch;
  const Path path = scratch.path() / "my.toml";
  const auto many = [](std::string_view piece) {
    std::string out;
    for (int i = 0; i < 100000; ++i) out += piece;
    return out;
  };
  for (const std::string& content : std::vector<std::string>{
           many("a.") + "a = 1\n", "[" + many("a.") + "a]\nb = 1\n", many("a . ") + "a = 1\n",
           many("'a'.\"b\".") + "a = 1\n", "[train]\n" + many("..")}) {
    const std::string message = message_of(path, "# 1.2.3\n" + content);
    CHECK_THAT(message, containing("a name with more than 16 dots"));
    CHECK_THAT(message, containing(content.starts_with("[train]") ? "my.toml:3:17: " : "my.toml:2:"));
  }
  // Dots elsewhere are none of a name.
  CHECK_THAT(message_of(path, "preset = \"lm\"\n# " + many(".") +
                                  "\ntrain.learning_rate = 0.5\n[data]\npath = \"" + many("a.") + "\"\n"),
             containing("no error"));
}

TEST_CASE("config: a group without a name is refused with its place") {
  for (const char* wrong : {"[,train]", "[[ .a]]", "[", "\t [\r\nwidth]", "[ =", "[[[a"}) {
    CAPTURE(wrong);
    CHECK_THROWS_WITH(read_config(text("task = \"lm\"\n", wrong, "\n"), "a.toml"), containing("a.toml:2:"));
  }
  CHECK_THROWS_WITH(read_config("\xEF\xBB\xBF[,train]\n", "a.toml"), containing("followed by no name"));
  CHECK_NOTHROW(read_config("task = \"lm\"\n  [ train ] # [,\nsteps = 3\n[\"model\"]\n['data']\n", "a.toml"));
}

TEST_CASE("config: groups of parameters are tables of a list, or one text") {
  const std::string tables =
      "task = \"recall\"\ntrain.max_steps = 1\ntrain.batch_size = 2\n[[train.groups]]\nmatch = "
      "\"*.bias\"\nweight_decay = 0\n"
      "[[train.groups]]\nmatch = \"blocks.*\"\nrate = 0.5\nfrozen = false\n";
  Config config = read_config(tables, "a.toml");
  CHECK(config.train.groups == "*.bias: weight_decay=0; blocks.*: frozen=false, rate=0.5");
  config.check();
  CHECK(read_config(to_toml(config), "b.toml").train.groups == config.train.groups);
  CHECK_THROWS_WITH(read_config("task = \"recall\"\n[[train.groups]]\nrate = 1\n", "a.toml"),
                    containing("a.toml:2:1: a group of parameters begins with the names"));
  CHECK_THROWS_WITH(read_config("task = \"recall\"\n[[train.other]]\nrate = 1\n", "a.toml"),
                    containing("train.other"));
  for (const char* wrong :
       {"[[]]", "[[", "[[a", "[[a]", "[[ a]]", "[ [a]]", "[[a]]]", "[[[a]]]", "x = [[1]]", "[[a.]]"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(read_config(text("task = \"recall\"\n", wrong, "\n"), "a.toml"), Error);
  }
  config.set("train.groups", "*.bias: rat=2", "--set ");
  CHECK_THROWS_WITH(config.check(), containing("train.groups: group *.bias: ") && containing("'rate'"));
}

TEST_CASE("config: a file that names no optimizer setting has the program's defaults, not the library's") {
  const Scratch scratch;
  Config config = make_config(scratch.file("plain.toml", "task = \"recall\"\n").string());
  const std::map<std::string, std::string> values = values_of(config);
  CHECK(values.at("train.optimizer") == "adamw");
  CHECK(values.at("train.beta2") == "0.98");
  CHECK(values.at("train.epsilon") == "1e-09");
  CHECK(values.at("train.weight_decay") == "0");
  CHECK(values.at("train.grad_clip") == "1");
  Config run =
      read_config("task = \"recall\"\n[train]\nbeta2 = 0.9\n", "config.toml");  // one of an older heed
  CHECK(values_of(run).at("train.beta2") == "0.9");
  CHECK(values_of(run).at("train.epsilon") == "1e-09");
  CHECK(values_of(run).at("train.weight_decay") == "0");
}
