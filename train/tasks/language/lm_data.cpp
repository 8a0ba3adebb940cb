// From text to windows of token ids.
#include "heed/train/tasks/language/lm_data.h"

#include <algorithm>
#include <utility>

#include "heed/core/io/files.h"
#include "heed/core/io/hash.h"
#include "heed/core/settings_in_errors.h"
#include "heed/data/synthetic/language_model_text.h"
#include "heed/data/text/text.h"
#include "heed/data/tokenizers/byte_pair.h"
#include "heed/data/tokenizers/id_tokenizer.h"
#include "heed/data/tokenizers/sentencepiece.h"
#include "heed/data/tokenizers/streamed_text.h"
#include "heed/data/tokenizers/tokenizer_json.h"
#include "heed/data/tokenizers/vocabulary.h"
#include "heed/data/tokenizers/wordpiece.h"
#include "heed/train/run/checkpoint_tokenizers.h"
#include "heed/train/tasks/find_data.h"

namespace heed {
namespace {

/// Fails when a held-out text has no token to score. `what`: its use. An empty `path`: the text is made.
void check_held_out(const char* what, const std::string& path, const EncodedText& text) {
  if (text.ids.size() > 1) return;
  fail(Fault::data, path.empty() ? "data" : path, ": the ", what, " text is too short: it has ",
       text.ids.size(), text.ids.size() == 1 ? " token" : " tokens",
       ", and a score needs at least 2. Give more text.");
}

/// Fails when the training text is shorter than a window of `block` tokens. `is_trained`: the model exists.
void check_training(const std::string& path, const EncodedText& training, int64_t block, int64_t max_length,
                    bool is_trained) {
  const size_t tokens = training.ids.size();
  if (static_cast<int64_t>(tokens) > block) return;
  fail(Fault::data, path.empty() ? "data" : path, ": the training text is too short: it has ", tokens,
       " of the ", block + 1,
       " tokens that a window and the token behind it need, with model.max_length = ", max_length,
       ". Give more text",
       tokens > 1 && !is_trained
           ? text(", or a ", advice("--max-length", "model.max_length"), " below ", tokens)
           : "",
       ".");
}

/// Options for a text that is only scored: it is one window where it is shorter than those of the model.
WindowOptions fitted(WindowOptions options, const EncodedText& text) {
  options.block = std::min(options.block, static_cast<int64_t>(text.ids.size()) - 1);
  options.stride = std::min(options.stride, options.block);
  return options;
}

}  // namespace

void LanguageOptions::text_fields(Fields& f) {
  f("path", path, "a text file; empty: embedded verse");
  f("validation_path", validation_path, "text to choose the best checkpoint; empty: cut from data.path");
  f("test_path", test_path, "text for the final score; empty: that of validation");
  f("num_examples", num_examples, {1, 100'000'000}, "number of characters to generate of the embedded verse");
  f("train_fraction", train_fraction, "fraction of the text to train on; the rest is validation");
  f("tokenizer",
    Choice(tokenizer,
           {"character", "byte", "byte_pair", "unigram", "bpe", "ids", "wordpiece", "tokenizer_json"}),
    "pieces of text; byte: all 256, byte_pair: as GPT-2 cuts them, unigram and bpe: by sentencepiece, "
    "ids: the text is numbers below data.vocabulary, wordpiece: BERT's, of the folder data.merges, "
    "tokenizer_json: any other of Hugging Face, of that folder");
  f("merges", merges,
    "byte_pair: folder of vocab.json and merges.txt (empty: learned from the text); wordpiece: folder of "
    "tokenizer.json or vocab.txt; tokenizer_json: folder of tokenizer.json");
  f("vocabulary", vocabulary, {8, max_positions}, "subword pieces");
}

void LanguageOptions::fields(Fields& f) {
  text_fields(f);
  f("document_end", Choice(document_end, {"none", "blank_line", "end_of_text"}),
    "ends a document, whose tokens later ones do not see; end_of_text: <|endoftext|>, none: the text is one");
  f("stride", stride, {0, max_integer},
    "new tokens that each window of the final score reads after its context; 0: all of them");
  f("eval_batches", eval_batches, {0, max_integer},
    "random batches that estimate the validation loss; 0: no estimate");
}

void LanguageData::test_on(const std::string& path) {
  options.path = options.validation_path = options.test_path = path;
  trains_ = false;
}

void LanguageData::load_tokenizer(const std::vector<NamedBytes>& artifacts) {
  tokenizer_ = artifact_tokenizer(artifacts, "text");
  if (!tokenizer_) fail(Fault::data, "the checkpoint holds no tokenizer of texts.");
}

std::vector<NamedBytes> LanguageData::artifacts() const {
  return {{"tokenizer.text." + tokenizer_->kind(), tokenizer_->save()}};
}

void LanguageData::make_tokenizer(std::string_view all, std::string_view training) {
  switch (options.tokenizer) {
    case TextUnit::character:
      tokenizer_ = make_character_tokenizer(all);
      return;
    case TextUnit::byte:
      tokenizer_ = make_byte_tokenizer();
      return;
    case TextUnit::byte_pair:
      tokenizer_ = options.merges.empty() ? train_byte_pair(training, {.size = options.vocabulary})
                                          : read_byte_pair(find_data(options.merges));
      return;
    case TextUnit::ids:
      tokenizer_ = make_id_tokenizer(options.vocabulary);
      return;
    case TextUnit::wordpiece:
      tokenizer_ = read_wordpiece(find_data(options.merges));
      return;
    case TextUnit::tokenizer_json:
      tokenizer_ = read_tokenizer_json(find_data(options.merges) / "tokenizer.json");
      return;
    case TextUnit::unigram:
    case TextUnit::bpe:
      break;
  }
  std::vector<std::string_view> lines = split_lines(training);
  std::erase_if(lines, [](std::string_view line) { return trimmed(line).empty(); });
  const auto model = options.tokenizer == TextUnit::bpe ? SubwordModel::bpe : SubwordModel::unigram;
  tokenizer_ = train_sentencepiece(lines, {.model = model, .size = options.vocabulary});
}

EncodedText LanguageData::encoded(std::string_view content, const std::string& path) const {
  EncodedText out;
  try {
    for (const std::string_view document : split_documents(content, options.document_end)) {
      const std::vector<int32_t> ids = encode_lines(*tokenizer_, document);
      if (!out.ids.empty() && !ids.empty())
        out.document_starts.push_back(static_cast<int64_t>(out.ids.size()));
      out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    }
  } catch (const Error& error) {
    if (path.empty()) throw;
    throw Error(error.fault(), text(path, ": ", error.what()));
  }
  return out;
}

HeldOutText LanguageData::held_out(const EncodedText& encoded, std::string_view text,
                                   const WindowOptions& windows) const {
  const std::vector<int32_t>& ids = encoded.ids;
  HeldOutText out;
  const std::string first = ids.empty() ? std::string() : decode_lines(*tokenizer_, std::span(ids).first(1));
  const std::string_view predicted = text.substr(std::min(first.size(), text.size()));
  out.bytes = static_cast<double>(predicted.size());
  out.words = static_cast<double>(blank_separated_words(predicted) +
                                  std::count(predicted.begin(), predicted.end(), '\n'));
  out.windows = std::make_unique<TextWindows>(ids, fitted(windows, encoded), encoded.document_starts);
  return out;
}

std::string LanguageData::tested_text(int64_t tokens_a_window) const {
  if (test.windows->size() - 1 <= tokens_a_window) return text(name_of_test(), " in one window");
  return text(name_of_test(), " in windows of ", tokens_a_window,
              options.stride > 0 ? text(" that score ", options.stride, " new ones each")
                                 : std::string(" that do not overlap"));
}

void LanguageData::check_options(const Config& config) const {
  if (!(options.train_fraction > 0 && options.train_fraction < 1))
    fail("data.train_fraction = ", options.train_fraction, ". It must be between 0 and 1.");
  if (options.stride > config.model.max_length)
    fail("data.stride = ", options.stride, ". It must be 0 to model.max_length, ", config.model.max_length,
         ".");
  if (!options.merges.empty() && options.tokenizer != TextUnit::byte_pair && !options.tokenizer_is_read())
    fail("data.merges = ", shown(options.merges),
         " is for data.tokenizer = byte_pair, wordpiece or tokenizer_json. Take one of them out.");
  if (config.train.batch_size < 1)
    fail("train.batch_size = ", config.train.batch_size, ". The task ", config.task_name,
         " counts windows: give at least 1.");
  if (options.path.empty() && !options.validation_path.empty())
    fail("data.validation_path = ", shown(options.validation_path), ", but data.path is empty. Give ",
         advice("--data", "data.path"), " too.");
}

LanguageData::Texts LanguageData::read_texts(const std::function<void(const std::string&)>& log) {
  const auto read = [&](const std::string& path, const char* use) {
    const Path found = find_data(path);
    if (io::is_directory(found))
      fail(Fault::file, "data: ", found,
           " is a folder. Language models read one text file: name a file in it.");
    std::string content = io::read_text(found);
    const bool any_bytes = options.tokenizer == TextUnit::byte || options.tokenizer == TextUnit::byte_pair;
    if (!any_bytes) check_text(content, found.string());
    log(text("data        ", path, ", ", content.size(), " bytes", use));
    return content;
  };
  Texts texts;
  texts.main = options.path.empty() ? verse(options.num_examples, 1) : read(options.path, "");
  if (options.path.empty())
    log("data        verse made by a grammar of our own; real text: --data FILE, or heed data get "
        "tinyshakespeare");
  metadata_ = {{"sha256 text", sha256_hex(texts.main)}};
  if (!options.validation_path.empty()) {
    texts.validation = options.validation_path == options.path
                           ? texts.main
                           : read(options.validation_path, " for validation");
    metadata_.emplace_back("sha256 validation text", sha256_hex(texts.validation));
  }
  if (!options.test_path.empty()) {
    texts.test = options.test_path == options.validation_path ? texts.validation
                                                              : read(options.test_path, " for the test");
    metadata_.emplace_back("sha256 test text", sha256_hex(texts.test));
  }
  return texts;
}

void LanguageData::make_windows(const Texts& texts, const TextSplit& split, const Config& config,
                                bool is_trained) {
  const int64_t around = leaves_room_for_ends ? tokenizer_->special().around_masked() : 0,
                block = config.model.max_length - around;
  if (block < 1)
    fail("model.max_length = ", config.model.max_length, ", and start and end of a window are ", around,
         " tokens. Give at least ", around + 1, ".");
  // One file may be all three: where a trained model is tested on it.
  const bool same = !texts.validation.empty() && options.validation_path == options.path;
  const bool same_test = texts.test.empty() || options.test_path == options.validation_path;
  const std::string& validation_file =
      options.validation_path.empty() ? options.path : options.validation_path;
  EncodedText training = encoded(split.train, options.path);
  const EncodedText held = same ? training : encoded(split.validation, validation_file);
  const EncodedText tested = same_test ? held : encoded(texts.test, options.test_path);
  const std::vector<int32_t>& ids = held.ids;
  const bool has_test = !options.test_path.empty();
  if (has_test) check_held_out("test", options.test_path, tested);
  check_held_out("validation", validation_file, held);
  if (trains_) check_training(options.path, training, block, config.model.max_length, is_trained);
  WindowOptions windows{
      .block = block, .batch = config.train.batch_size, .seed = static_cast<uint64_t>(config.train.seed)};
  const WindowOptions of_train = trains_ ? windows : fitted(windows, training);
  train =
      std::make_unique<TextWindows>(std::move(training.ids), of_train, std::move(training.document_starts));
  opening.assign(ids.begin(), ids.begin() + std::min({int64_t{64}, block, static_cast<int64_t>(ids.size())}));
  windows.seed = 1;
  if (options.eval_batches > 0)
    estimate = std::make_unique<TextWindows>(ids, fitted(windows, held), held.document_starts);
  // Scores do not depend on the batch size; large batches use all cores.
  windows.batch = std::max<int64_t>(4096 / block, 1);
  validation = held_out(held, split.validation, windows);
  windows.stride = options.stride;
  test = held_out(tested, texts.test.empty() ? split.validation : texts.test, windows);
}

void LanguageData::load(const Config& config, const std::vector<NamedBytes>& artifacts,
                        const std::function<void(const std::string&)>& log) {
  check_options(config);
  const Texts texts = read_texts(log);
  TextSplit split{.train = texts.main, .validation = texts.validation};
  if (options.validation_path.empty())
    split =
        hold_out_end(texts.main, options.train_fraction,
                     options.tokenizer == TextUnit::byte ? CharacterUnit::byte : CharacterUnit::code_point);
  if (!artifacts.empty()) {
    load_tokenizer(artifacts);
  } else {
    if (options.tokenizer_is_read() && options.merges.empty())
      fail("data.tokenizer = ", options.tokenizer == TextUnit::wordpiece ? "wordpiece" : "tokenizer_json",
           ": pieces are read, not learned. Give ", advice("--merges FOLDER", "data.merges"),
           ", a folder with tokenizer.json",
           options.tokenizer == TextUnit::wordpiece ? " or vocab.txt." : ".");
    if (options.tokenizer != TextUnit::character && options.tokenizer != TextUnit::byte &&
        options.tokenizer != TextUnit::ids && options.merges.empty())
      log(text("vocabulary  learning ", options.vocabulary, " pieces from ", split.train.size(), " bytes"));
    if (texts.validation.empty() && texts.test.empty())
      make_tokenizer(texts.main, split.train);
    else
      make_tokenizer(texts.main + texts.validation + texts.test, split.train);
  }
  if (texts.main.size() > 1'000'000)
    log(text("split       encoding ", texts.main.size() + texts.validation.size() + texts.test.size(),
             " bytes"));
  make_windows(texts, split, config, !artifacts.empty());
  const char* unit = options.tokenizer == TextUnit::character ? " characters"
                     : options.tokenizer == TextUnit::byte    ? " bytes"
                                                              : " pieces";
  metadata_.emplace_back("vocabulary", text(tokenizer_->size()));
  metadata_.emplace_back("tokenizer sha256", sha256_hex(tokenizer_->save()));
  log(text("split       ", train->size(), " train, ", validation.windows->size(), " validation",
           texts.test.empty() ? std::string() : text(", ", test.windows->size(), " test"), "; ",
           tokenizer_->size(), unit,
           options.document_end == DocumentEnd::none
               ? std::string()
               : text("; ", train->num_documents() + validation.windows->num_documents(), " documents")));
}

}  // namespace heed
