// A tokenizer of the sentencepiece library.
#include "heed/data/tokenizers/sentencepiece.h"

#include <algorithm>
#include <exception>
#include <unordered_map>

#include "heed/core/error.h"
#include "heed/core/io/hash.h"
#include "heed/data/text/text.h"
#include "heed/data/tokenizers/sentencepiece_model.h"

#if HEED_HAS_SENTENCEPIECE

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

namespace heed {
namespace {

namespace sp = ::sentencepiece;

constexpr std::string_view file_title = "heed sentencepiece 1\n";
constexpr size_t hash_digits = 64;  // hexadecimal digits of a SHA-256
constexpr size_t max_model_bytes = size_t{64} << 20;

/// The library's message without its source location.
std::string reason(const sp::util::Status& status) {
  const std::string message = status.error_message();
  const size_t end = message.starts_with("INTERNAL: ") || message.find(".cc(") != std::string::npos
                         ? message.find("] ")
                         : std::string::npos;
  const std::string rest = end == std::string::npos ? message : message.substr(end + 2);
  return rest.empty() ? message : rest;
}

/// Runs a call of the library. Turns its exceptions, which damage that it does not check for causes, into
/// Errors.
template <class Call>
void report_damage(Call call) {
  try {
    call();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail(Fault::data, "sentencepiece: the model is damaged: ", shown(error.what(), 200), ".");
  }
}

/// Saved form: file_title, SHA-256 of the model in hexadecimal, newline, the library's serialised model. The
/// library accepts most damaged models, hence the hash.
class SentencePieceTokenizer final : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(std::string model) : Tokenizer(SpecialIds{}), model_(std::move(model)) {
    report_damage([&] {
      const auto status = processor_.LoadFromSerializedProto(model_);
      if (!status.ok()) {
        fail(Fault::data, "sentencepiece: the model cannot be loaded: ", shown(reason(status), 200), ".");
      }
    });
    if (processor_.unk_id() != unknown() || processor_.pad_id() != pad() || processor_.bos_id() != start() ||
        processor_.eos_id() != end()) {
      fail(Fault::data, "sentencepiece: the model has the ids unknown ", processor_.unk_id(), ", pad ",
           processor_.pad_id(), ", start ", processor_.bos_id(), ", end ", processor_.eos_id(),
           "; they must be 0, 1, 2, 3. Train it with these ids.");
    }
  }

  std::string kind() const override { return "sentencepiece"; }
  int64_t size() const override { return processor_.GetPieceSize(); }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int> ids;
    const auto status = processor_.Encode(text, &ids);
    if (!status.ok()) fail("sentencepiece: the text cannot be encoded: ", reason(status), ".");
    return {ids.begin(), ids.end()};
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::vector<int> plain;
    for (const int32_t id : ids) {
      check(id);
      if (id != pad() && id != start() && id != end()) plain.push_back(id);
    }
    std::string text;
    const auto status = processor_.Decode(plain, &text);
    if (!status.ok()) fail("sentencepiece: the ids cannot be decoded: ", reason(status), ".");
    return text;
  }

  std::string piece(int32_t id) const override {
    check(id);
    return processor_.IdToPiece(id);
  }

  std::string save() const override { return text(file_title, sha256_hex(model_), "\n", model_); }

 private:
  void check(int32_t id) const {
    if (id < 0 || id >= size())
      fail("sentencepiece: no piece has the id ", id, "; ids are 0 .. ", size() - 1, ".");
  }

  std::string model_;
  sp::SentencePieceProcessor processor_;
};

/// Iterates over the sentences for the trainer.
class Sentences final : public sp::SentenceIterator {
 public:
  explicit Sentences(std::span<const std::string_view> sentences) : sentences_(sentences) { read(); }
  bool done() const override { return index_ == sentences_.size(); }
  void Next() override {
    ++index_;
    read();
  }
  const std::string& value() const override { return sentence_; }
  sp::util::Status status() const override { return {}; }

 private:
  void read() {
    if (!done()) sentence_ = sentences_[index_];
  }
  std::span<const std::string_view> sentences_;
  size_t index_ = 0;
  std::string sentence_;  // a copy of sentences_[index_]
};

}  // namespace

std::unique_ptr<Tokenizer> train_sentencepiece(std::span<const std::string_view> sentences,
                                               const SubwordOptions& options) {
  if (options.size < 8 || options.size > 1'000'000 || options.threads < 1 || options.threads > 128) {
    fail("sentencepiece: size = ", options.size, " and threads = ", options.threads,
         "; they must be in 8 .. 1000000 and 1 .. 128.");
  }
  size_t max_bytes = 0;
  bool is_blank = true;
  for (size_t i = 0; i < sentences.size(); ++i) {
    check_text(sentences[i], text("sentence ", i + 1));
    max_bytes = std::max(max_bytes, sentences[i].size());
    is_blank = is_blank && trimmed(sentences[i]).empty();
  }
  if (is_blank) fail(Fault::data, "sentencepiece: there is no text to train on.");
  const std::unordered_map<std::string, std::string> settings = {
      {"model_type", options.model == SubwordModel::unigram ? "unigram" : "bpe"},
      {"vocab_size", std::to_string(options.size)},
      {"hard_vocab_limit", "false"},
      {"character_coverage", "1"},
      {"num_threads", std::to_string(options.threads)},
      {"max_sentence_length", std::to_string(max_bytes + 1)},
      {"unk_id", "0"},
      {"pad_id", "1"},
      {"bos_id", "2"},
      {"eos_id", "3"},
      {"unk_piece", std::string(special_names[0])},
      {"pad_piece", std::string(special_names[1])},
      {"bos_piece", std::string(special_names[2])},
      {"eos_piece", std::string(special_names[3])},
      {"minloglevel", "3"},
  };
  Sentences iterator(sentences);
  std::string model;
  const auto status = sp::SentencePieceTrainer::Train(settings, &iterator, &model);
  if (!status.ok()) {
    fail("sentencepiece: no model of ", options.size, " pieces can be trained on ", sentences.size(),
         " sentences: ", reason(status), ". Choose another size.");
  }
  return std::make_unique<SentencePieceTokenizer>(std::move(model));
}

struct PieceModel::Library {
  sp::SentencePieceProcessor processor;
};

PieceModel::PieceModel(std::string bytes, std::string_view name) : bytes_(std::move(bytes)) {
  if (bytes_.size() > max_model_bytes)
    fail(Fault::data, name, ": a model of ", bytes_.size(), " bytes; at most ", max_model_bytes,
         " are accepted.");
  detail::check_sentencepiece_model(bytes_, name, 0, "Give the file that the model was trained with.");
  library_ = std::make_shared<Library>();
  report_damage([&] {
    const auto status = library_->processor.LoadFromSerializedProto(bytes_);
    if (!status.ok())
      fail(Fault::data, name, ": the sentencepiece library cannot load it: ", shown(reason(status), 200),
           ".");
  });
}

std::vector<std::string> PieceModel::cut(std::string_view text) const {
  std::vector<std::string> pieces;
  const auto status = library_->processor.Encode(text, &pieces);
  if (!status.ok()) fail("sentencepiece: the text cannot be encoded: ", reason(status), ".");
  return pieces;
}

std::string PieceModel::joined(const std::vector<std::string>& pieces) const {
  std::string text;
  const auto status = library_->processor.Decode(pieces, &text);
  if (!status.ok()) fail("sentencepiece: the pieces cannot be joined: ", reason(status), ".");
  return text;
}

namespace detail {

std::unique_ptr<Tokenizer> load_sentencepiece(std::string_view bytes, std::string_view name) {
  constexpr std::string_view remedy = " Take the one of another checkpoint of the run.";
  const size_t header_bytes = file_title.size() + hash_digits + 1;
  if (!bytes.starts_with(file_title)) {
    fail(Fault::data, name, ": byte 0: this is no saved sentencepiece model.", remedy);
  }
  if (bytes.size() <= header_bytes || bytes[header_bytes - 1] != '\n') {
    fail(Fault::data, name, ": byte ", file_title.size(), ": the SHA-256 and the model are cut short.",
         remedy);
  }
  const std::string_view model = bytes.substr(header_bytes);
  if (model.size() > max_model_bytes) {
    fail(Fault::data, name, ": a model of ", model.size(), " bytes from byte ", header_bytes, " on; at most ",
         max_model_bytes, " are accepted.");
  }
  if (sha256_hex(model) != bytes.substr(file_title.size(), hash_digits)) {
    fail(Fault::data, name, ": bytes ", header_bytes, "-", bytes.size() - 1, " do not match their SHA-256.",
         remedy);
  }
  check_sentencepiece_model(model, name, static_cast<int64_t>(header_bytes), remedy.substr(1));
  try {
    return std::make_unique<SentencePieceTokenizer>(std::string(model));
  } catch (const Error& error) {
    fail(Fault::data, name, ": from byte ", header_bytes, " on: ", error.what());
  }
}

}  // namespace detail

}  // namespace heed

#else

namespace heed {
namespace {

[[noreturn]] void fail_without_library() {
  fail(
      "this build of heed has no sentencepiece. Install libsentencepiece-dev and build again, or use the "
      "word "
      "tokenizer.");
}

}  // namespace

std::unique_ptr<Tokenizer> train_sentencepiece(std::span<const std::string_view>, const SubwordOptions&) {
  fail_without_library();
}
std::unique_ptr<Tokenizer> detail::load_sentencepiece(std::string_view, std::string_view) {
  fail_without_library();
}
PieceModel::PieceModel(std::string, std::string_view) { fail_without_library(); }
std::vector<std::string> PieceModel::cut(std::string_view) const { fail_without_library(); }
std::string PieceModel::joined(const std::vector<std::string>&) const { fail_without_library(); }

}  // namespace heed

#endif
