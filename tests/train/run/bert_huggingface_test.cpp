// tests train/run/bert_huggingface.h and the folder of a BERT.
#include "heed/train/run/bert_huggingface.h"

#include <algorithm>
#include <functional>

#include "heed/core/io/files.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/bert_folder.h"
#include "heed/tests/train/damaged_model_files.h"
#include "heed/tests/train/model_numbers.h"
#include "heed/train/run/huggingface_folder.h"

namespace heed {
namespace {

std::vector<float> bert_logits(const MaskedLanguageModel& model) {
  const NoGrad no_grad;
  const Tensor ids = Tensor::of<int32_t>(std::vector<int32_t>{2, 5, 4, 8, 3}, Shape{1, 5});
  return model.logits(model.hidden(ids, {}, {})).to_host();
}

/// The file with each tensor that `keeps` accepts, under the name that it gives it.
std::string with_tensors(const std::string& bytes, const std::function<bool(TensorBytes&)>& keeps) {
  const SafeTensors file = SafeTensors::parse(bytes, "m");
  std::vector<TensorBytes> list;
  for (const TensorEntry& entry : file.entries()) {
    TensorBytes one{entry.name, entry.dtype, entry.shape, file.bytes(entry)};
    if (keeps(one)) list.push_back(one);
  }
  return encode_safetensors(list);
}

void replace_once(const Path& path, const std::string& from, const std::string& to) {
  std::string content = io::read(path);
  const size_t at = content.find(from);
  INFO(from);
  REQUIRE(at != std::string::npos);
  io::write(path, content.replace(at, from.size(), to));
}

}  // namespace

TEST_CASE("bert folder: a model that was written and read has the same logits, tokens and files") {
  const Scratch scratch;
  const SmallBert made;
  made.write(scratch.path());
  const ImportedModel read = read_huggingface_folder(scratch.path());
  CHECK(read.preset == "mlm");
  CHECK(read.notes.empty());
  MaskedLanguageModel other = bert_model(2);
  CHECK(bert_logits(other) != bert_logits(made.model));
  load_bytes(other, read.weights);
  CHECK(bert_logits(other) == bert_logits(made.model));
  CHECK(read.tokenizer->save() == made.tokenizer->save());
  CHECK(setting_of(read.settings, "model.token_types") == "2");
  CHECK(setting_of(read.settings, "model.norm_epsilon") == "1e-12");
  CHECK(setting_of(read.settings, "model.activation") == "gelu");
  CHECK(setting_of(read.settings, "model.max_length") == "16");
  CHECK(setting_of(read.settings, "model.tied_output_bias") == "true");
  const SafeTensors weights = SafeTensors::parse(read.weights, "m");
  ExportedModel again{.name = "b",
                      .config = small_bert(),
                      .attention = "softmax",
                      .weights = weights,
                      .tokenizer = *read.tokenizer,
                      .translator = {},
                      .is_masked = true};
  for (const NamedBytes& one : huggingface_files(again)) {
    INFO(one.name);
    CHECK((one.bytes == io::read(scratch / one.name)));
  }
}

TEST_CASE("bert folder: names without bert., gamma and beta, and an output layer of its own") {
  const Scratch scratch;
  const SmallBert made;
  made.write(scratch.path());
  const Path path = scratch / "model.safetensors";
  const std::string bytes = io::read(path), weights = read_huggingface_folder(scratch.path()).weights;
  io::write(path, with_tensors(bytes, [](TensorBytes& one) {
              if (one.name.starts_with("bert.")) one.name = one.name.substr(5);
              for (const auto& [from, to] :
                   {std::pair{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}}) {
                const size_t at = one.name.find(from);
                if (at != std::string::npos) one.name.replace(at, std::string(from).size(), to);
              }
              return true;
            }));
  CHECK(read_huggingface_folder(scratch.path()).weights == weights);

  TransformerConfig config = small_bert();
  config.tie_embeddings = Tie::none;
  config.tied_output_bias = false;
  MaskedLanguageModel untied = bert_model(3, config);
  const SafeTensors saved = SafeTensors::parse(save_bytes(untied), "m");
  ExportedModel exported{.name = "b",
                         .config = config,
                         .attention = "softmax",
                         .weights = saved,
                         .tokenizer = *made.tokenizer,
                         .translator = {},
                         .is_masked = true};
  for (const NamedBytes& one : huggingface_files(exported)) io::write(scratch / one.name, one.bytes);
  const ImportedModel read = read_huggingface_folder(scratch.path());
  CHECK(setting_of(read.settings, "model.tie_embeddings") == "none");
  MaskedLanguageModel other = bert_model(4, config);
  load_bytes(other, read.weights);
  CHECK(bert_logits(other) == bert_logits(untied));
  replace_once(scratch / "config.json", "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true");
  CHECK_THROWS_WITH(
      read_huggingface_folder(scratch.path()),
      containing("cls.predictions.decoder.weight differs from bert.embeddings.word_embeddings"));
}

TEST_CASE("bert folder: a BertModel gets a new head, and its pooler is left out") {
  const Scratch scratch;
  const SmallBert made;
  made.write(scratch.path());
  const Path path = scratch / "model.safetensors";
  const std::vector<float> pooler(12 * 12);
  io::write(path, with_tensors(io::read(path), [&](TensorBytes& one) {
              if (one.name == "cls.predictions.bias") {
                one = {"bert.pooler.dense.weight", "F32", {12, 12}, std::as_bytes(std::span(pooler))};
                return true;
              }
              return !one.name.starts_with("cls.");
            }));
  const ImportedModel read = read_huggingface_folder(scratch.path());
  REQUIRE(read.notes.size() == 2);
  CHECK_THAT(read.notes[0], containing("pooler is left out"));
  CHECK_THAT(read.notes[1],
             containing("are new: head.weight, head.bias, head_norm.gain, head_norm.bias, output.bias"));
  MaskedLanguageModel other = bert_model(2);
  load_bytes(other, read.weights);
  const NoGrad no_grad;
  const Tensor ids = Tensor::of<int32_t>(std::vector<int32_t>{2, 5, 3}, Shape{1, 3});
  CHECK(other.hidden(ids, {}, {}).to_host() == made.model.hidden(ids, {}, {}).to_host());
  CHECK(read_huggingface_folder(scratch.path()).weights == read.weights);
  const SafeTensors file = SafeTensors::parse(read.weights, "m");
  const std::vector<float> head = file.floats(file.at("head.weight"));
  CHECK(std::ranges::count(head, 0.0F) == 0);
  CHECK(std::ranges::max(head) < 0.1F);
}

TEST_CASE("bert folder: what Heed cannot read is refused by file and member") {
  const SmallBert made;
  const auto refused = [&](const char* file, const std::string& from, const std::string& to,
                           const std::string& reason) {
    const Scratch scratch;
    made.write(scratch.path());
    replace_once(scratch / file, from, to);
    INFO(reason);
    CHECK(fault_of([&] { read_huggingface_folder(scratch.path()); }) == Fault::data);
    CHECK_THROWS_WITH(read_huggingface_folder(scratch.path()), containing(file) && containing(reason));
  };
  const char* config = "config.json";
  refused(config, "\"absolute\"", "\"relative_key\"", "position_embedding_type is \"relative_key\"");
  refused(config, "\"is_decoder\": false", "\"is_decoder\": true", "is_decoder is true, and only false");
  refused(config, "\"gelu\"", "\"tanh\"", "hidden_act is \"tanh\". It must be one of gelu, gelu_new");
  refused(config, "\"num_attention_heads\": 2", "\"num_attention_heads\": 5", "does not divide hidden_size");
  refused(config, "\"vocab_size\": 16", "\"vocab_size\": 15", "has 16 tokens");
  refused(config, "\"type_vocab_size\": 2", "\"type_vocab_size\": 0", "type_vocab_size is 0");
  refused("tokenizer.json", "BertPreTokenizer", "Whitespace", "pre_tokenizer is not BertPreTokenizer");
  const Scratch scratch;
  made.write(scratch.path());
  const Path path = scratch / "model.safetensors";
  const std::string bytes = io::read(path);
  io::write(path, with_tensors(bytes, [](TensorBytes& one) {
              if (one.name == "cls.predictions.bias") one.name = "classifier.bias";
              return true;
            }));
  CHECK_THROWS_WITH(read_huggingface_folder(scratch.path()), containing("cls.predictions.bias is missing"));
  io::write(path, bytes);
  io::remove_all(scratch / "tokenizer.json");
  CHECK(fault_of([&] { read_huggingface_folder(scratch.path()); }) == Fault::file);
  CHECK_THROWS_WITH(read_huggingface_folder(scratch.path()), containing("lacks tokenizer.json"));
}

TEST_CASE("bert folder: damaged config.json and tokenizer.json are read or refused, and never crash") {
  const Scratch scratch;
  const SmallBert made;
  made.write(scratch.path());
  for (const char* name : {"config.json", "tokenizer.json"}) {
    const std::string good = io::read(scratch / name);
    CHECK(refused_damages(good, good.size(), [&](const std::string& bytes) {
            io::write_plain(scratch / name, std::vector<std::string_view>{bytes}, false);
            read_huggingface_folder(scratch.path());
          }) > 2000);
    io::write(scratch / name, good);
  }
}

TEST_CASE("bert folder: what BERT does not have is refused by its setting") {
  SmallBert made;
  const auto refused = [&](const std::string& reason, const std::function<void(TransformerConfig&)>& change) {
    made.exported.config = small_bert();
    change(made.exported.config);
    INFO(reason);
    CHECK(fault_of([&] { huggingface_files(made.exported); }) == Fault::usage);
    CHECK_THROWS_WITH(huggingface_files(made.exported), containing("a BERT needs " + reason));
  };
  refused("model.norm = post", [](auto& c) { c.norm = NormPlace::pre; });
  refused("model.position = learned", [](auto& c) { c.position = PositionKind::sinusoid; });
  refused("model.activation = gelu", [](auto& c) { c.activation = Activation::swiglu; });
  refused("model.tied_output_bias = true", [](auto& c) { c.tied_output_bias = false; });
  refused("model.attention_bias = true", [](auto& c) { c.attention_bias.key = false; });
  refused("model.scale_embedding = false", [](auto& c) { c.scale_embedding = true; });
  refused("model.logit_scale = 1", [](auto& c) { c.logit_scale = 2; });
  made.exported.config = small_bert();
  made.exported.attention = "linear";
  CHECK_THROWS_WITH(huggingface_files(made.exported), containing("attention.encoder = softmax, not linear"));
}

}  // namespace heed
