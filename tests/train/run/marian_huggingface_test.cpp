// tests train/run/marian_huggingface.h and train/run/marian_tokenizer_files.h
#include "heed/train/run/marian_huggingface.h"

#include <algorithm>
#include <functional>

#include "heed/attention/variant.h"
#include "heed/core/io/files.h"
#include "heed/data/tokenizers/marian.h"
#include "heed/data/tokenizers/sentencepiece.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/train/run/huggingface_folder.h"

#if HEED_HAS_SENTENCEPIECE

namespace heed {
namespace {

/// The bytes of a sentencepiece model of a few sentences.
std::string small_spm(SubwordModel kind) {
  const std::vector<std::string_view> sentences{"the old dog sleeps", "a cat saw the bird", "il cane dorme",
                                                "un gatto vide un topo"};
  const std::string saved = train_sentencepiece(sentences, {.model = kind, .size = 40})->save();
  return saved.substr(saved.find('\n', saved.find('\n') + 1) + 1);  // behind the title and the SHA-256
}

/// The tokenizer of one language: a vocabulary with its end first and padding last, as of OPUS-MT.
std::unique_ptr<Tokenizer> small_marian_tokenizer(SubwordModel kind) {
  MarianLists lists{.pieces = {"</s>", "<unk>", ">>ita<<"}, .special = {}, .model = small_spm(kind)};
  for (const char* piece : {"\u2581the", "\u2581", "a", "c", "t", "n", "e", "o", "g", "d"})
    lists.pieces.emplace_back(piece);
  lists.pieces.emplace_back("<pad>");
  const auto pad = static_cast<int32_t>(lists.pieces.size()) - 1;
  lists.special = {.unknown = 1, .pad = pad, .start = pad, .end = 0, .starts_source = false};
  return make_marian_tokenizer(std::move(lists), "small.spm");
}

TransformerConfig small_marian() {
  TransformerConfig out{.d_model = 12, .heads = 2, .d_ff = 20, .layers = 2, .max_length = 16};
  out.dropout = 0;
  out.activation = Activation::silu;
  out.norm = NormPlace::post;
  out.position = PositionKind::sinusoid_halves;
  out.tie_embeddings = Tie::all;
  out.tied_output_bias = true;
  out.attention_bias = true;
  return out;
}

/// A model with vectors that can be told apart.
EncoderDecoder marian_model(uint64_t seed, int64_t vocabulary) {
  const NoGrad no_grad;
  Rng rng(seed);
  const AttentionFactory softmax = attention_factory("softmax");
  EncoderDecoder out(small_marian(), vocabulary, vocabulary, {softmax, softmax, softmax}, rng);
  visit_tensors(out, [&](const std::string&, Tensor& x) {
    if (x.rank() == 1) fill_uniform(x.detach(), 0.5, 1.5, rng);
  });
  return out;
}

std::vector<float> marian_logits(const EncoderDecoder& model) {
  const NoGrad no_grad;
  const Tensor source = Tensor::of<int32_t>(std::vector<int32_t>{3, 4, 0}, Shape{1, 3}),
               lengths = Tensor::of<int32_t>(std::vector<int32_t>{3}, Shape{1}),
               target = Tensor::of<int32_t>(std::vector<int32_t>{13, 5}, Shape{1, 2});
  return model.logits(model.decode(target, model.encode(source, lengths, {}), lengths, {})).to_host();
}

/// A model with its tokenizers, as `heed export` has it.
struct SmallMarian {
  std::unique_ptr<Tokenizer> source = small_marian_tokenizer(SubwordModel::unigram),
                             target = small_marian_tokenizer(SubwordModel::bpe);
  EncoderDecoder model = marian_model(1, source->size());
  SafeTensors weights = SafeTensors::parse(save_bytes(model), "model.safetensors");
  ExportedModel exported{.name = "m",
                         .config = small_marian(),
                         .attention = "softmax",
                         .weights = weights,
                         .tokenizer = *source,
                         .translator = ExportedTranslator{.encoder_attention = "softmax",
                                                          .cross_attention = "softmax",
                                                          .target = *target,
                                                          .beam_size = 3,
                                                          .length_penalty = 0.5,
                                                          .is_renormalized = true}};

  void write(const Path& folder) const {
    for (const NamedBytes& one : huggingface_files(exported)) io::write(folder / one.name, one.bytes);
  }
};

void replace_in(const Path& path, const std::string& from, const std::string& to) {
  std::string content = io::read(path);
  const size_t at = content.find(from);
  INFO(from);
  REQUIRE(at != std::string::npos);
  io::write(path, content.replace(at, from.size(), to));
}

/// The tensors of a file, the one of a name left out or given another name or shape.
std::string changed_tensors(const std::string& bytes, const std::function<bool(TensorBytes&)>& keeps) {
  const SafeTensors file = SafeTensors::parse(bytes, "m");
  std::vector<TensorBytes> list;
  for (const TensorEntry& entry : file.entries()) {
    TensorBytes one{entry.name, entry.dtype, entry.shape, file.bytes(entry)};
    if (keeps(one)) list.push_back(one);
  }
  return encode_safetensors(list);
}

}  // namespace

TEST_CASE("marian folder: a model that was written and read has the same logits, texts and files") {
  const Scratch scratch;
  const SmallMarian made;
  made.write(scratch.path());
  const ImportedModel read = read_huggingface_folder(scratch.path());
  CHECK(read.preset == "translate");
  EncoderDecoder other = marian_model(2, made.source->size());
  CHECK(marian_logits(other) != marian_logits(made.model));
  load_bytes(other, read.weights);
  CHECK(marian_logits(other) == marian_logits(made.model));
  CHECK(read.tokenizer->save() == made.source->save());
  CHECK(read.target_tokenizer->save() == made.target->save());
  const auto value = [&](const std::string& key) {
    for (const auto& [name, word] : read.settings)
      if (name == key) return word;
    return std::string("none");
  };
  CHECK(value("model.activation") == "silu");
  CHECK(value("model.position") == "sinusoid_halves");
  CHECK(value("decode.beam_size") == "3");
  CHECK(value("decode.length_penalty") == "0.5");
  CHECK(value("decode.beam_rules") == "transformers_renormalized");
  const SafeTensors weights = SafeTensors::parse(read.weights, "m");
  ExportedModel again{.name = "m",
                      .config = small_marian(),
                      .attention = "softmax",
                      .weights = weights,
                      .tokenizer = *read.tokenizer,
                      .translator = made.exported.translator};
  for (const NamedBytes& one : huggingface_files(again)) {
    INFO(one.name);
    CHECK((one.bytes == io::read(scratch / one.name)));
  }
}

TEST_CASE("marian folder: the shared table may stand under any of its names, but not as two tables") {
  const Scratch scratch;
  const SmallMarian made;
  made.write(scratch.path());
  const Path path = scratch / "model.safetensors";
  const std::string bytes = io::read(path), shared = "model.shared.weight",
                    weights = read_huggingface_folder(scratch.path()).weights;
  for (const char* name : {"lm_head.weight", "model.decoder.embed_tokens.weight"}) {
    io::write(path, changed_tensors(bytes, [&](TensorBytes& one) {
                if (one.name == shared) one.name = name;
                return true;
              }));
    CHECK(read_huggingface_folder(scratch.path()).weights == weights);
  }
  io::write(path, changed_tensors(bytes, [&](TensorBytes& one) { return one.name != shared; }));
  CHECK_THROWS_WITH(read_huggingface_folder(scratch.path()),
                    containing("tensor model.shared.weight is missing"));
  const std::vector<float> zeros(14 * 12);
  std::vector<TensorBytes> list;
  const SafeTensors file = SafeTensors::parse(bytes, "m");
  for (const TensorEntry& entry : file.entries())
    list.push_back({entry.name, entry.dtype, entry.shape, file.bytes(entry)});
  list.push_back({"lm_head.weight", "F32", {14, 12}, std::as_bytes(std::span(zeros))});
  io::write(path, encode_safetensors(list));
  CHECK_THROWS_WITH(read_huggingface_folder(scratch.path()),
                    containing("tensor lm_head.weight differs from model.shared.weight"));
  list.back() = {"model.encoder.embed_positions.weight", "F32", {16, 12}, {}};
  const std::vector<float> positions(16 * 12);
  list.back().bytes = std::as_bytes(std::span(positions));
  io::write(path, encode_safetensors(list));
  CHECK_THROWS_WITH(read_huggingface_folder(scratch.path()), containing("where sinusoids have"));
}

TEST_CASE("marian folder: what Heed cannot read is refused by file and member") {
  const SmallMarian made;
  const auto refused = [&](const char* file, const std::string& from, const std::string& to,
                           const std::string& reason) {
    const Scratch scratch;
    made.write(scratch.path());
    replace_in(scratch / file, from, to);
    INFO(reason);
    CHECK(fault_of([&] { read_huggingface_folder(scratch.path()); }) == Fault::data);
    CHECK_THROWS_WITH(read_huggingface_folder(scratch.path()), containing(file) && containing(reason));
  };
  const char* config = "config.json";
  refused(config, "\"decoder_layers\": 2", "\"decoder_layers\": 3", "decoder_layers is 3, and only 2");
  refused(config, "\"swish\"", "\"tanh\"", "activation_function is \"tanh\". It must be one of swish, silu");
  refused(config, "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false",
          "tie_word_embeddings is");
  refused(config, "\"normalize_before\": false", "\"normalize_before\": true", "norms stand behind");
  refused(config, "\"pad_token_id\": 13", "\"pad_token_id\": 14", "a whole number from 0 to 13");
  refused(config, "\"decoder_start_token_id\": 13", "\"decoder_start_token_id\": 2",
          "start with pad_token_id");
  refused(config, "\"scale_embedding\": true", "\"scale_embedding\": 1", "It must be true or false");
  refused(config, "\"encoder_attention_heads\": 2", "\"encoder_attention_heads\": 5",
          "decoder_attention_heads");
  refused("generation_config.json", "13\n    ]", "12\n    ]", "bad_words_ids");
  refused("generation_config.json", "\"renormalize_logits\": true", "\"renormalize_logits\": 1",
          "renormalize_logits is 1. It must be true or false");
  refused("tokenizer_config.json", "\"separate_vocabs\": false", "\"separate_vocabs\": true",
          "one vocabulary");
  refused("vocab.json", "\"<pad>\"", "\"<bad>\"", "lacks the token <pad>");
  refused("vocab.json", "\"</s>\": 0", "\"</s>\": 1", "ids must be the whole numbers");
  refused("source.spm", "[UNK]", "\xFF\xFF\xFF\xFF\xFF", "the sentencepiece model is damaged");
  const Scratch scratch;
  made.write(scratch.path());
  io::remove_all(scratch / "target.spm");
  CHECK_THROWS_WITH(read_huggingface_folder(scratch.path()), containing("lacks target.spm"));
}

TEST_CASE("marian folder: what Marian does not have is refused by its setting") {
  SmallMarian made;
  const auto refused = [&](const std::string& reason, const std::function<void(TransformerConfig&)>& change) {
    made.exported.config = small_marian();
    change(made.exported.config);
    INFO(reason);
    CHECK(fault_of([&] { huggingface_files(made.exported); }) == Fault::usage);
    CHECK_THROWS_WITH(huggingface_files(made.exported), containing("a Marian needs " + reason));
  };
  refused("model.norm = post", [](auto& c) { c.norm = NormPlace::pre; });
  refused("model.position = sinusoid_halves", [](auto& c) { c.position = PositionKind::sinusoid; });
  refused("model.activation = silu", [](auto& c) { c.activation = Activation::swiglu; });
  refused("model.tie_embeddings = all", [](auto& c) { c.tie_embeddings = Tie::output; });
  refused("model.attention_bias = true", [](auto& c) { c.attention_bias.key = false; });
  refused("model.norm_epsilon", [](auto& c) { c.norm_epsilon = 1e-6; });
  refused("model.logit_scale = 1", [](auto& c) { c.logit_scale = 2; });
}

TEST_CASE("marian tokenizer: ids by the vocabulary, codes of languages, and the saved form") {
  MarianLists lists{.pieces = {"</s>", "<unk>", ">>ita<<", "<pad>"},
                    .special = {.unknown = 1, .pad = 3, .start = 3, .end = 0, .starts_source = false},
                    .model = small_spm(SubwordModel::unigram)};
  const std::vector<std::string> cut = PieceModel(lists.model, "small.spm").cut("a cat");
  REQUIRE(cut.size() > 1);
  std::vector<int32_t> ids{2};
  for (const std::string& piece : cut) {
    const auto found = std::ranges::find(lists.pieces, piece);
    ids.push_back(static_cast<int32_t>(found - lists.pieces.begin()));
    if (found == lists.pieces.end()) lists.pieces.push_back(piece);
  }
  const auto tokenizer = make_marian_tokenizer(lists, "vocab.json");
  CHECK(tokenizer->encode(">>ita<<a cat") == ids);
  ids.push_back(tokenizer->end());
  ids.push_back(tokenizer->pad());
  CHECK(tokenizer->decode(ids) == ">>ita<< a cat");
  CHECK(tokenizer->encode(">>deu<<") == std::vector<int32_t>{1});
  CHECK(tokenizer->decode(tokenizer->encode("\u65e5")).empty());
  CHECK(tokenizer->start() == tokenizer->pad());
  std::string bytes = tokenizer->save();
  CHECK(load_tokenizer("marian", bytes)->save() == bytes);
  bytes[bytes.size() / 2] ^= 1;
  CHECK(fault_of([&] { load_tokenizer("marian", bytes, "saved"); }) == Fault::data);
  CHECK(fault_of([&] { load_tokenizer("marian", bytes.substr(0, 50), "saved"); }) == Fault::data);
  MarianLists twice = marian_lists(*tokenizer);
  twice.pieces[4] = twice.pieces[0];
  CHECK_THROWS_WITH(make_marian_tokenizer(twice, "v.json"), containing("has two ids"));
  MarianLists outside = marian_lists(*tokenizer);
  outside.special.pad = 99;
  CHECK_THROWS_WITH(make_marian_tokenizer(outside, "v.json"), containing("has the id 99"));
}

}  // namespace heed

#endif
