// Language modelling: characters, a decoder-only model, nats a character.
#include <algorithm>
#include <cmath>

#include "attention/variant.h"
#include "core/hash.h"
#include "core/io.h"
#include "data/characters.h"
#include "data/verse.h"
#include "data/vocabulary.h"
#include "train/decode.h"
#include "train/task_list.h"

namespace heed {
namespace {

struct Options {
  std::string path;
  int64_t characters = 1000000;
  double share = 0.9;
  bool bytes = false;
  void fields(Fields& f) {
    f("path", path, "a text file; empty: embedded verse");
    f("characters", characters, "length of the embedded verse");
    f("share", share, "of the text for training; the rest is validation");
    f("bytes", bytes, "bytes instead of characters");
  }
};

class LanguageModel final : public Task {
 public:
  void fields(Fields& f) override { options_.fields(f); }

  void load(const Config& config, const std::vector<NamedBytes>& sealed,
            const std::function<void(const std::string&)>& say) override {
    if (!(options_.share > 0 && options_.share < 1))
      fail("data.share = ", options_.share, ". It must be between 0 and 1.");
    if (config.train.batch < 1)
      fail("train.batch = ", config.train.batch, ". The task lm counts windows: give at least 1.");
    const bool embedded = options_.path.empty();
    const std::string whole =
        embedded ? verse(options_.characters, 1) : io::read_text(find_data(options_.path));
    say(embedded ? "data        verse made by a grammar of our own; real text: --data FILE"
                 : text("data        ", options_.path, ", ", whole.size(), " bytes"));
    if (sealed.empty()) {
      tokenizer_ =
          make_character_tokenizer(whole, options_.bytes ? CharacterUnit::byte : CharacterUnit::code_point);
    } else {
      load_sealed(config, sealed);
    }
    TextSplit split = split_text(tokenizer_->encode(whole), options_.share);
    facts_ = {{"sha256 text", sha256_hex(whole)}, {"characters", text(tokenizer_->size())}};
    say(text("split       ", split.train.size(), " train, ", split.validation.size(), " validation, ",
             tokenizer_->size(), " characters"));
    const WindowOptions windows{.block = config.model.max_length,
                                .batch = config.train.batch,
                                .seed = static_cast<uint64_t>(config.train.seed)};
    train_ = std::make_unique<TextWindows>(std::move(split.train), windows);
    max_length_ = config.model.max_length;
    smoothing_ = config.train.smoothing;
    const int64_t shown = std::min({int64_t{64}, max_length_, static_cast<int64_t>(split.validation.size())});
    validation_text_.assign(split.validation.begin(), split.validation.begin() + shown);
    // Scores do not depend on the batch; many windows at once keep the cores busy.
    validation_ = std::make_unique<TextWindows>(std::move(split.validation),
                                                WindowOptions{.block = config.model.max_length, .batch = 64});
  }

  void load_sealed(const Config& config, const std::vector<NamedBytes>& sealed) override {
    max_length_ = config.model.max_length;
    tokenizer_ = sealed_tokenizer(sealed, "text");
    if (!tokenizer_) fail(Fault::data, "lm: the checkpoint holds no tokenizer.");
  }

  std::unique_ptr<Module> model(const Config& config, Rng& rng) const override {
    return std::make_unique<DecoderOnly>(config.model, tokenizer_->size(),
                                         attention_factory(config.attention.decoder), rng);
  }

  std::vector<NamedBytes> sealed() const override {
    return {{"tokenizer.text." + tokenizer_->kind(), tokenizer_->save()}};
  }
  std::vector<std::pair<std::string, std::string>> facts() const override { return facts_; }

  // Windows start anywhere, so an epoch is as many batches as would cover the text once.
  int64_t plan(int64_t epoch) override {
    epoch_ = epoch;
    return train_->batches();
  }

  Batch batch(int64_t position) const override {
    return tensors(train_->random(epoch_ * train_->batches() + position));
  }

  std::vector<std::string> parts() const override { return {"input", "targets"}; }

  Tensor loss(Module& model, const Batch& batch, const Pass& pass) const override {
    const Tensor logits = dynamic_cast<DecoderOnly&>(model)(batch.tensors[0], pass);
    settle_terms(pass.terms, logits, batch.tensors[1]);
    return cross_entropy(logits, batch.tensors[1], pass.noise != nullptr ? smoothing_ : 0);
  }

  Scores validate(Module& model) const override {
    const NoTape no_tape;
    double total = 0, weight = 0;
    for (int64_t i = 0; i < validation_->batches(); ++i) {
      const Batch part = tensors(validation_->in_order(i));
      total += loss(model, part, {}).item() * part.weight;
      weight += part.weight;
    }
    return {.list = {{"loss", total / weight}}};
  }

  void rehearse(Module& model) const override {
    const NoTape no_tape;
    if (validation_->batches() > 0) loss(model, tensors(validation_->in_order(0)), {});
  }

  Evaluation test(Module& model, const DecodeOptions&) const override {
    Evaluation out;
    const double loss = validate(model).first();
    out.scores.list = {{"loss", loss}, {"perplexity", std::exp(loss)}, {"bits", loss / std::log(2.0)}};
    out.notes = {"nats a character over all of validation, in blocks that do not overlap"};
    const auto& language = dynamic_cast<DecoderOnly&>(model);
    Rng rng(1);
    std::string made;
    sample(language, {validation_text_[0]}, max_length_, {.tokens = 400}, rng, [&](int32_t id) {
      made += tokenizer_->decode(std::vector<int32_t>{id});
      return true;
    });
    out.samples.push_back({.source = "(temperature 0.8, top-k 200)", .hypothesis = made});
    return out;
  }

  std::vector<MapView> maps(Module& module, const std::string& given, std::string& caption) const override {
    const NoTape no_tape;
    auto& model = dynamic_cast<DecoderOnly&>(module);
    std::vector<int32_t> ids = given.empty() ? validation_text_ : tokenizer_->encode(given);
    if (ids.empty()) fail("inspect: give a text of at least one character.");
    if (static_cast<int64_t>(ids.size()) > max_length_) {
      fail("inspect: the text has ", ids.size(), " characters, the model reads ", max_length_,
           " at most. Shorten it.");
    }
    caption = tokenizer_->decode(ids);
    Probe probe;
    model(Tensor::of<int32_t>(ids, Shape{1, static_cast<int64_t>(ids.size())}), {.probe = &probe});
    std::vector<std::string> labels;
    for (int32_t id : ids) labels.push_back(tokenizer_->piece(id));
    std::vector<MapView> views;
    for (const Probe::Map& map : probe.maps) {
      views.push_back(
          map_view(model, map, "decoder self", static_cast<int64_t>(views.size()), labels, labels));
    }
    return views;
  }

 private:
  static Batch tensors(const WindowBatch& windows) {
    const Shape shape{windows.input.rows, windows.input.columns};
    Batch batch;
    batch.tensors = {Tensor::of<int32_t>(windows.input.ids, shape),
                     Tensor::of<int32_t>(windows.target.ids, shape)};
    batch.tokens = shape.size();
    batch.weight = static_cast<double>(batch.tokens);
    return batch;
  }

  Options options_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<TextWindows> train_, validation_;
  std::vector<int32_t> validation_text_;  // its first characters, for maps and samples
  std::vector<std::pair<std::string, std::string>> facts_;
  int64_t epoch_ = 0, max_length_ = 0;
  double smoothing_ = 0;
};

}  // namespace

TaskEntry task::lm() {
  return {"lm", "text to a character language model: decoder-only, nats a character",
          []() -> std::unique_ptr<Task> { return std::make_unique<LanguageModel>(); }};
}

}  // namespace heed
