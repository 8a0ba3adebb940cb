// The task mlm: which tokens are hidden and how, shards, scores, and the commands on its runs.
#include <map>
#include <set>

#include "heed/data/synthetic/language_model_text.h"
#include "heed/data/tokenizers/vocabulary.h"
#include "heed/data/tokenizers/wordpiece.h"
#include "heed/tests/catch.h"
#include "heed/tests/train/bert_folder.h"
#include "heed/tests/train/shell.h"
#include "heed/train/config/config.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/tasks/language/masked_tokens.h"
#include "heed/train/tasks/task.h"

using namespace heed;

namespace {

/// Rows of the ids 5 to 15, which are no special tokens.
Rows plain_rows(int64_t rows, int64_t columns) {
  Rows out{.rows = rows, .columns = columns, .ids = {}, .lengths = {}};
  for (int64_t i = 0; i < rows * columns; ++i) out.ids.push_back(static_cast<int32_t>(5 + i * 7 % 11));
  return out;
}

std::vector<int64_t> numbers_from(int64_t first, int64_t count) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(first + i);
  return out;
}

Config mlm_config(const std::vector<std::pair<std::string, std::string>>& more = {}) {
  Config config = preset_config("mlm");
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"model.d_model", "16"},
                                                        {"model.heads", "2"},
                                                        {"model.d_ff", "16"},
                                                        {"model.max_length", "16"},
                                                        {"data.num_examples", "3000"},
                                                        {"train.batch_size", "6"}})
    config.set(key, value, "");
  for (const auto& [key, value] : more) config.set(key, value, "");
  config.check();
  return config;
}

std::string output_of_run(const Shell& shell, const std::string& line) {
  const Result result = shell.run(command_words(line));
  CAPTURE(line, result.err);
  REQUIRE(result.code == 0);
  return result.out;
}

}  // namespace

TEST_CASE("masked tokens: 15 % of a row are chosen, of which 80 % are hidden, 10 % changed and 10 % kept") {
  const auto tokenizer = small_wordpiece();
  const Rows windows = plain_rows(400, 100);
  const MaskedRows made =
      masked_rows(*tokenizer, windows, numbers_from(0, 400), {.share = 0.15, .seed = 3, .drawn = 0});
  CHECK(made.columns == 102);
  REQUIRE(made.asked.rows.size() == 400 * 15);
  std::map<int32_t, int64_t> chosen_of_row;
  double hidden = 0, kept = 0;
  std::set<int32_t> random;
  for (size_t i = 0; i < made.asked.rows.size(); ++i) {
    const int32_t place = made.asked.rows[i], row = place / 102, column = place % 102;
    ++chosen_of_row[row];
    REQUIRE((column > 0 && column < 101));
    const int32_t was = windows.ids[static_cast<size_t>(row * 100 + column - 1)],
                  is = made.ids[static_cast<size_t>(place)];
    CHECK(made.asked.tokens[i] == was);
    if (is == 4)
      ++hidden;
    else if (is == was)
      ++kept;
    else
      random.insert(is);
  }
  for (const auto& [row, count] : chosen_of_row) CHECK(count == 15);
  CHECK(hidden / 6000 == Approx(0.8 + 0.1 / 16).margin(0.015));  // a random token may be the mask
  CHECK(kept / 6000 == Approx(0.1 + 0.1 / 16).margin(0.012));
  CHECK(random.size() == 15);  // all but the mask, special ones among them
  const std::set<int32_t> asked(made.asked.rows.begin(), made.asked.rows.end());
  for (int32_t place = 0; place < 400 * 102; ++place) {
    const int32_t row = place / 102, column = place % 102, is = made.ids[static_cast<size_t>(place)];
    if (column == 0) CHECK(is == 2);
    if (column == 101) CHECK(is == 3);
    if (column > 0 && column < 101 && !asked.contains(place))
      CHECK(is == windows.ids[static_cast<size_t>(row * 100 + column - 1)]);
  }
}

TEST_CASE("masked tokens: the choice is a function of seed, draw and name, not of the batch") {
  const auto tokenizer = make_byte_tokenizer();  // without a mask of its own, and without ends
  const Rows two = plain_rows(2, 22);
  Rows second{.rows = 1, .columns = 22, .ids = {two.ids.begin() + 22, two.ids.end()}, .lengths = {}};
  const auto ids = [&](const Rows& rows, int64_t name, uint64_t seed, uint64_t drawn) {
    return masked_rows(*tokenizer, rows, numbers_from(name, rows.rows),
                       {.share = 0.5, .seed = seed, .drawn = drawn})
        .ids;
  };
  const std::vector<int32_t> both = ids(two, 0, 1, 0);
  CHECK(std::vector<int32_t>(both.begin() + 22, both.end()) == ids(second, 1, 1, 0));
  CHECK(ids(second, 1, 1, 0) != ids(second, 0, 1, 0));
  CHECK(ids(second, 1, 1, 0) != ids(second, 1, 2, 0));
  CHECK(ids(second, 1, 1, 0) != ids(second, 1, 1, 1));
  CHECK(std::ranges::count(both, 256) > 10);
  CHECK(mask_of(*tokenizer) == 256);
  CHECK(masked_vocabulary(*tokenizer) == 257);
  CHECK(masked_vocabulary(*small_wordpiece()) == 16);
}

TEST_CASE("masked tokens: a text between its ends is cut to the length that a model reads") {
  const auto tokenizer = small_wordpiece();
  CHECK(between_ends(*tokenizer, {5, 6, 7}, 5) == std::vector<int32_t>{2, 5, 6, 7, 3});
  CHECK(between_ends(*tokenizer, {5, 6, 7}, 4) == std::vector<int32_t>{2, 5, 6, 3});
  CHECK(between_ends(*tokenizer, {}, 4) == std::vector<int32_t>{2, 3});
  CHECK(between_ends(*make_byte_tokenizer(), {5, 6, 7}, 2) == std::vector<int32_t>{5, 6});
}

TEST_CASE("mlm: the shards of a batch are its rows, with their tokens to guess") {
  Config config = mlm_config();
  config.task->load(config, {}, [](const std::string&) {});
  REQUIRE(config.task->plan(1) >= 2);
  const Batch whole = config.task->batch(1);
  CHECK(config.task->tensor_names().size() == whole.tensors.size());
  CHECK(whole.weight == 6 * 2);  // 15 % of 16 tokens, rounded
  std::vector<double> ids, targets;
  double weight = 0;
  for (int64_t part = 0; part < 4; ++part) {
    const Batch shard = config.task->shard(1, {.part = part, .parts = 4});
    CHECK(shard.whole_weight == whole.weight);
    if (shard.tensors.empty()) continue;
    for (const double id : shard[0].to_doubles()) ids.push_back(id);
    for (const double id : shard[1].to_doubles()) targets.push_back(id);
    weight += shard.weight;
  }
  CHECK(weight == whole.weight);
  CHECK(ids == whole[0].to_doubles());
  CHECK(targets == whole[1].to_doubles());
}

TEST_CASE("mlm: windows of a tokenizer with a mask leave room for start and end") {
  const Scratch scratch;
  io::write(scratch / "tokenizer.json", wordpiece_json(*small_wordpiece()).dump());
  std::string words;
  for (int i = 0; i < 400; ++i) words += i % 3 == 0 ? "the cats " : "sat a dog. ";
  io::write(scratch / "words.txt", words);
  Config config = mlm_config({{"data.path", (scratch / "words.txt").string()},
                              {"data.tokenizer", "wordpiece"},
                              {"data.merges", scratch.path().string()}});
  config.task->load(config, {}, [](const std::string&) {});
  config.task->plan(0);
  const Batch batch = config.task->batch(0);
  REQUIRE(batch[0].shape() == Shape{6, 16});
  const std::vector<double> ids = batch[0].to_doubles();
  for (size_t row = 0; row < 6; ++row) {
    CHECK(ids[row * 16] == 2);
    CHECK(ids[row * 16 + 15] == 3);
  }
  config.set("data.merges", "", "");
  CHECK_THROWS_WITH(config.task->load(config, {}, [](const std::string&) {}),
                    containing("pieces are read, not learned"));
  CHECK_THROWS_WITH(mlm_config({{"data.hidden_share", "1"}}),
                    containing("data.hidden_share = 1. It must be"));
  CHECK_THROWS_WITH(mlm_config({{"attention.encoder", "mamba"}}), containing("attention.encoder"));
}

TEST_CASE("mlm: it learns, resumes with the same bits, and the commands for runs take it", "[slow]") {
  const Shell shell;
  const std::string small =
      " --d-model 16 --heads 2 --d-ff 32 --max-length 16 --num-examples 3000 --schedule constant --quiet";
  output_of_run(shell, "train mlm --steps 12 --name whole" + small);
  output_of_run(shell, "train mlm --steps 6 --name part" + small);
  const auto scores = [&](const std::string& run) {
    return parse_json(output_of_run(shell, "evaluate " + run + " --json"), run);
  };
  const Json whole = scores("runs/whole");
  CHECK(whole.at("loss").real() < scores("runs/part").at("loss").real());  // six steps more
  CHECK(whole.find("accuracy") != nullptr);
  output_of_run(shell, "resume runs/part --steps 12 --quiet");
  const auto weights = [&](const char* run) {
    return io::read(checkpoint_folder(shell.scratch / run, 12) / "model.safetensors");
  };
  CHECK(weights("runs/part") == weights("runs/whole"));
  CHECK(output_of_run(shell, "inspect runs/whole mountain --out maps").find("maps") != std::string::npos);
  CHECK(io::exists(shell.scratch / "maps/encoder-self-1.npy"));
  output_of_run(shell, "heads runs/whole --examples 4");
  output_of_run(shell, "ablate runs/whole --examples 4 --no-curve");
  output_of_run(shell, "maps runs/whole --count 2 --out files");
  check_refused(shell, {"generate", "runs/whole"}, 2,
                {"runs/whole is a run of the task mlm", "not of a language model"});
  check_refused(shell, {"export", "runs/whole", "--as", "huggingface", "--out", "x"}, 2,
                {"a BERT needs data.tokenizer = wordpiece"});
  check_refused(shell, {"export", "runs/whole", "--as", "gguf", "--out", "x.gguf"}, 2,
                {"Give a run of the task lm."});
  check_refused(shell, {"inspect", "runs/whole", "a mountain that is long"}, 2,
                {"the text has 23 tokens, and the model reads 16 at most"});
}
