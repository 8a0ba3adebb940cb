// Data of language models: tokenizers, user files, and the units of losses.
#include "heed/train/tasks/language/lm_data.h"

#include <cmath>

#include "heed/core/io/files.h"
#include "heed/data/synthetic/language_model_text.h"
#include "heed/nn/transformer.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/train/config/config.h"
#include "heed/train/tasks/map_provider.h"

using namespace heed;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

Config lm(const Settings& more = {}) {
  Config config = read_config("task = \"lm\"\n", "lm");
  const Settings settings{{"data.num_examples", "6000"}, {"model.d_model", "16"},
                          {"model.heads", "2"},          {"model.layers", "1"},
                          {"model.d_ff", "16"},          {"model.max_length", "16"},
                          {"train.max_steps", "2"},      {"train.batch_size", "4"},
                          {"data.vocabulary", "300"},    {"data.eval_batches", "3"}};
  for (const Settings& list : {settings, more}) {
    for (const auto& [key, value] : list) config.set(key, value, "");
  }
  config.check();
  return config;
}

std::string said_by_load(Config& config) {
  std::string out;
  config.task->load(config, {}, [&](const std::string& line) { out += line + "\n"; });
  return out;
}

std::unique_ptr<Module> loaded_model(Config& config) {
  said_by_load(config);
  Rng rng(1);
  return config.task->model(config, rng);
}

double named(const Scores& scores, const std::string& name) {
  for (const auto& [known, value] : scores.list) {
    if (known == name) return value;
  }
  FAIL("no score is called " << name);
  return 0;
}

}  // namespace

TEST_CASE("language data: text that is none is refused by file, line and column, but for units of bytes") {
  const Scratch scratch;
  const std::string path = (scratch / "words.txt").string();
  std::string words;
  for (int i = 0; i < 100; ++i) words += text("line ", i, " of the text\n");
  for (const std::string& bad : {std::string("a\0b", 3), std::string("a\xFFz")}) {
    io::write(path, text(words, bad, "\n", words));
    Config characters = lm({{"data.path", path}});
    CHECK(fault_of([&] { said_by_load(characters); }) == Fault::data);
    CHECK_THROWS_WITH(said_by_load(characters), containing(path + ":101:2: "));
    Config bytes = lm({{"data.path", path}, {"data.tokenizer", "byte"}});
    CHECK_NOTHROW(said_by_load(bytes));
  }
  io::write(path, words);
  io::write(scratch / "bad.txt", words + '\0');
  Config tested = lm({{"data.path", path}, {"data.test_path", (scratch / "bad.txt").string()}});
  CHECK_THROWS_WITH(said_by_load(tested), containing("bad.txt:101:1: a NUL byte"));
}

TEST_CASE("language data: every unit of text trains a tokenizer, is checksummed, and comes back") {
  for (const std::string unit : {"character", "byte", "byte_pair", "unigram", "bpe"}) {
    CAPTURE(unit);
    Config config = lm({{"data.tokenizer", unit}});
    std::unique_ptr<Module> model;
    try {
      model = loaded_model(config);
    } catch (const Error& error) {  // a build without sentencepiece
      CHECK_THAT(error.what(), containing("no sentencepiece"));
      continue;
    }
    const std::vector<NamedBytes> artifacts = config.task->artifacts();
    REQUIRE(artifacts.size() == 1);
    Config again = lm({{"data.tokenizer", unit}});
    again.task->load(again, artifacts, [](const std::string&) {});
    CHECK((again.task->artifacts()[0].bytes == artifacts[0].bytes));
    config.task->plan(0);
    again.task->plan(0);
    CHECK(config.task->batch(3).tensors[0].to_doubles() == again.task->batch(3).tensors[0].to_doubles());
    Evaluation scored = config.task->test(*model, {});
    config.task->add_samples(*model, scored);
    const double loss = named(scored.scores, "loss");
    CHECK(named(scored.scores, "perplexity") == Approx(std::exp(loss)));
    CHECK(named(scored.scores, "bits_per_byte") > 0);
    if (unit == "byte") CHECK(named(scored.scores, "bits_per_byte") == Approx(loss / std::log(2.0)));
    CHECK(scored.samples.at(0).hypothesis.size() > 100);
    std::string caption;
    CHECK(!map_provider(*config.task).maps(*model, "", caption).empty());
    CHECK(!caption.empty());
  }
}

TEST_CASE(
    "language data: the loss of an untrained uniform model in bits per byte does not depend on the "
    "tokenizer") {
  // Uniform over V pieces: log V a token, and bytes a token follow from the text alone.
  for (const std::string unit : {"byte", "byte_pair"}) {
    CAPTURE(unit);
    Config config = lm({{"data.tokenizer", unit}, {"model.tie_embeddings", "none"}});
    const auto model = loaded_model(config);
    Rng none(1);
    for (const Named& named : parameters(*model)) fill_uniform(*named.tensor, 0, 0, none);
    const Scores scores = config.task->test(*model, {}).scores;
    LanguageData data;
    data.options.num_examples = 6000;
    data.options.tokenizer = unit == "byte" ? TextUnit::byte : TextUnit::byte_pair;
    data.options.vocabulary = 300;
    data.load(config, {}, [](const std::string&) {});
    const double tokens = static_cast<double>(data.validation.windows->size() - 1);
    const double loss = std::log(static_cast<double>(data.tokenizer().size()));
    CHECK(named(scores, "loss") == Approx(loss).epsilon(1e-5));
    CHECK(data.validation.bytes == Approx(600).margin(12));
    CHECK(named(scores, "bits_per_byte") ==
          Approx(loss * tokens / std::log(2.0) / data.validation.bytes).epsilon(1e-5));
    CHECK(named(scores, "word_perplexity") ==
          Approx(std::exp(loss * tokens / data.validation.words)).epsilon(1e-4));
  }
}

TEST_CASE("language data: validation tells the whole text's loss and an estimate by random windows") {
  Config config = lm();
  const auto model = loaded_model(config);
  const Scores scores = config.task->validate(*model);
  CHECK(scores.list.size() == 2);
  CHECK(scores.list[0].first == "loss");
  const double loss = named(scores, "loss"), estimate = named(scores, "estimate");
  CHECK(loss != estimate);
  CHECK(estimate == Approx(loss).epsilon(0.1));
  CHECK(named(config.task->validate(*model), "estimate") == estimate);
  Config without = lm({{"data.eval_batches", "0"}});
  const auto same = loaded_model(without);
  CHECK(without.task->validate(*same).list.size() == 1);
}

TEST_CASE("language data: validation and test texts of their own are not cut from the training text") {
  const Scratch scratch;
  io::write(scratch / "a.txt", verse(3000, 1));
  io::write(scratch / "b.txt", "Xerxes " + verse(700, 2));
  io::write(scratch / "c.txt", "Yvonne " + verse(500, 3));
  const Settings files{{"data.path", (scratch / "a.txt").string()},
                       {"data.validation_path", (scratch / "b.txt").string()},
                       {"data.test_path", (scratch / "c.txt").string()}};
  Config config = lm(files);
  const std::string said = said_by_load(config);
  CHECK_THAT(said, containing("3000 train, 707 validation, 507 test"));
  Rng rng(1);
  const auto model = config.task->model(config, rng);
  const Evaluation scored = config.task->test(*model, {});
  CHECK_THAT(scored.notes.at(0), containing("506 tokens of ") && containing("c.txt in windows"));
  CHECK(named(scored.scores, "loss") != named(config.task->validate(*model), "loss"));
  Config pieces = lm({files[0], files[1], files[2], {"data.tokenizer", "byte_pair"}});
  CHECK_THAT(said_by_load(pieces), containing("300 pieces"));
}

TEST_CASE("language data: a held-out text shorter than a window is scored as one window") {
  const Scratch scratch;
  std::string numbers;
  for (int i = 0; i < 40; ++i) numbers += text(i, " ");
  io::write(scratch / "long.txt", numbers);
  io::write(scratch / "short.txt", "5 3 8 2 9 1");
  const std::string brief = (scratch / "short.txt").string();
  Config config = lm({{"data.tokenizer", "ids"},
                      {"data.path", (scratch / "long.txt").string()},
                      {"data.validation_path", brief},
                      {"data.test_path", brief},
                      {"data.stride", "12"}});
  const auto module = loaded_model(config);
  auto& model = dynamic_cast<DecoderOnly&>(*module);
  const std::vector<int32_t> ids{5, 3, 8, 2, 9}, next{3, 8, 2, 9, 1};
  const Tensor input = Tensor::of<int32_t>(ids, Shape{1, 5}), target = Tensor::of<int32_t>(next, Shape{1, 5});
  const double wanted = cross_entropy(model(input, {}), target).item();
  CHECK(named(config.task->validate(model), "loss") == Approx(wanted).epsilon(1e-6));
  const Evaluation test = config.task->test(model, {});
  CHECK(named(test.scores, "loss") == Approx(wanted).epsilon(1e-6));
  CHECK_THAT(test.notes.front(), containing(text("5 tokens of ", brief, " in one window")));
  // A window of 16 reads 16 tokens and scores as many, behind each of them.
  const auto note_of = [&](int count) {
    std::string words;
    for (int i = 0; i < count; ++i) words += text(i, " ");
    io::write(scratch / "short.txt", words);
    Config again = lm({{"data.tokenizer", "ids"},
                       {"data.path", (scratch / "long.txt").string()},
                       {"data.test_path", brief}});
    const auto made = loaded_model(again);
    return again.task->test(*made, {}).notes.front();
  };
  CHECK_THAT(note_of(17), containing("16 tokens of") && containing("in one window"));
  CHECK_THAT(note_of(18), containing("17 tokens of") && containing("in windows of 16 that do not overlap"));
}

TEST_CASE("language data: documents are read as if each were alone") {
  const DefaultDevice device(any_device());
  const Scratch scratch;
  std::string text;
  for (int i = 0; i < 120; ++i) text += verse(20 + 7 * i % 31, static_cast<uint64_t>(i)) + "\n\n";
  io::write(scratch / "a.txt", text);
  Config config = lm({{"data.path", (scratch / "a.txt").string()},
                      {"data.document_end", "blank_line"},
                      {"model.position", "learned"},
                      {"model.max_length", "48"},
                      {"model.dropout", "0.0"},
                      {"train.label_smoothing", "0.1"}});
  const auto module = loaded_model(config);
  auto& model = dynamic_cast<DecoderOnly&>(*module);
  convert(model, DType::f64);
  Rng rng(1);
  const ForwardContext training{.rng = &rng};
  const NoGrad no_grad;
  const Task& task = *config.task;
  const Batch batch = task.batch(3);
  REQUIRE(batch.tensors.size() == (default_device == Device::cuda ? 4 : 3));
  const auto ids = batch[0].to_doubles(), targets = batch[1].to_doubles(), lengths = batch[2].to_doubles();
  double total = 0, all_tokens = 0;
  int64_t num_documents = 0;
  for (size_t at = 0, next = 0; next < lengths.size(); ++next) {
    const auto length = static_cast<size_t>(lengths[next]);
    const std::vector<int32_t> own(ids.begin() + at, ids.begin() + at + length),
        wanted(targets.begin() + at, targets.begin() + at + length);
    at += length;
    if (length == 0) continue;  // a GPU gets the same number of them in each batch
    ++num_documents;
    const Shape shape{1, static_cast<int64_t>(length)};
    const Tensor alone = model(Tensor::of<int32_t>(own, shape), {});
    total += cross_entropy(alone, Tensor::of<int32_t>(wanted, shape), 0.1).item() * lengths[next];
    all_tokens += lengths[next];
  }
  CHECK(num_documents > 8);
  CHECK(all_tokens == 4 * 48);
  CHECK(task.loss(model, batch, training).item() == Approx(total / all_tokens).epsilon(1e-10));
  CHECK(cross_entropy(model(batch[0], {}), batch[1], 0.1).item() != Approx(total / all_tokens).epsilon(1e-4));
  // Two processes share the windows, and what ends them.
  double shared = 0;
  for (const int64_t part : {0, 1}) {
    const Batch shard = task.shard(3, {part, 2});
    CHECK(shard.whole_weight == batch.weight);
    shared += task.loss(model, shard, training).item() * shard.weight;
  }
  CHECK(shared / batch.weight == Approx(total / all_tokens).epsilon(1e-10));
  CHECK(named(task.validate(model), "loss") > 0);
}

TEST_CASE("language data: what cannot be is refused with the key") {
  const Scratch scratch;
  io::write(scratch / "a.txt", verse(3000, 1));
  const std::string path = (scratch / "a.txt").string();
  const auto refused = [](const Settings& settings, Fault fault) -> std::string {
    try {
      Config config = lm(settings);
      said_by_load(config);
    } catch (const Error& error) {
      CHECK(static_cast<int>(error.fault()) == static_cast<int>(fault));
      return error.what();
    }
    return "no error";
  };
  CHECK_THAT(refused({{"data.eval_batches", "-1"}}, Fault::usage), containing("data.eval_batches = -1"));
  CHECK_THAT(refused({{"data.merges", "gpt2"}}, Fault::usage), containing("data.tokenizer = byte_pair"));
  CHECK_THAT(refused({{"data.validation_path", path}}, Fault::usage), containing("data.path is empty"));
  CHECK_THAT(refused({{"data.path", scratch.path().string()}}, Fault::file), containing("is a folder"));
  CHECK_THAT(refused({{"data.path", path}, {"data.test_path", "nowhere.txt"}}, Fault::file),
             containing("nowhere.txt"));
  io::write(scratch / "short.txt", text(std::string(12, 'a'), "\n"));
  CHECK_THAT(refused({{"data.path", (scratch / "short.txt").string()}}, Fault::data),
             containing("the training text is too short: it has 11 of the 17 tokens that a window and the "
                        "token behind it need, with model.max_length = 16") &&
                 containing("or a model.max_length below 11."));
  const std::string brief = (scratch / "short.txt").string();
  CHECK_THAT(refused({{"data.path", brief}, {"data.validation_path", brief}}, Fault::data),
             containing("the training text is too short: it has 13 of the 17 tokens"));
  io::write(scratch / "one.txt", "a");
  CHECK_THAT(refused({{"data.path", path}, {"data.test_path", (scratch / "one.txt").string()}}, Fault::data),
             containing((scratch / "one.txt").string() +
                        ": the test text is too short: it has 1 token, and a score needs at least 2."));
  CHECK_THAT(refused({{"data.tokenizer", "byte_pair"}, {"data.vocabulary", "100"}}, Fault::usage),
             containing("size = 100"));
  CHECK_THAT(
      refused({{"data.tokenizer", "byte_pair"}, {"data.merges", scratch.path().string()}}, Fault::file),
      containing("merges.txt"));
}
