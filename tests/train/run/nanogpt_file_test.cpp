// tests train/run/nanogpt_file.h and train/run/torch_file.h
#include "heed/train/run/nanogpt_file.h"

#include "heed/core/io/files.h"
#include "heed/data/tokenizers/id_tokenizer.h"
#include "heed/tests/train/damaged_model_files.h"
#include "heed/tests/train/nanogpt_bytes.h"

namespace heed {
namespace {

void read_as_nanogpt(const std::string& bytes) { (void)read_nanogpt(bytes, "none/m.pt"); }

}  // namespace

TEST_CASE("nanogpt: the logits of a model that was written and read are its own, bit for bit") {
  for (const bool has_biases : {true, false}) {
    const TransformerConfig config = small_nanogpt(has_biases);
    DecoderOnly model = random_model(config, nanogpt_tokens, 1);
    NanogptBytes file(model);
    file.tensors[3].is_parameter = file.tensors.back().is_parameter = true;
    for (const char* prefix : {"", "_orig_mod."}) {
      file.prefix = prefix;
      const ImportedModel read = read_nanogpt(file.bytes(), "none/m.pt");
      CHECK(logits_with(config, nanogpt_tokens, read.weights) == some_logits(model));
      CHECK(read.vocabulary == nanogpt_tokens);
      CHECK(setting_of(read.settings, "model.activation") == "gelu");
      CHECK(setting_of(read.settings, "model.norm_bias") == (has_biases ? "true" : "false"));
      CHECK(setting_of(read.settings, "model.dropout") == "0.25");
      CHECK(setting_of(read.settings, "model.tie_embeddings") == "output");
    }
  }
}

TEST_CASE("nanogpt: the state of the optimizer is skipped, whatever its storages are") {
  DecoderOnly model = random_model(small_nanogpt(), nanogpt_tokens, 1);
  const NanogptBytes file(model);
  const std::string plain = read_nanogpt(file.bytes(), "none/m.pt").weights;
  const std::string with = file.bytes(file.pickle([&](PickleWriter& out) {
    out.text("optimizer").dict().text("state").dict().integer(0);
    NanogptBytes::put(out, {"exp_avg", {3}, {1}, "no such storage", 3});
    out.set().set().set().text("iter_num").integer(7).set();
  }));
  CHECK(read_nanogpt(with, "none/m.pt").weights == plain);
}

TEST_CASE(
    "nanogpt: a model that was read is written with the same numbers, and what does not fit is refused") {
  const auto ids = make_id_tokenizer(nanogpt_tokens);
  for (const bool has_biases : {true, false}) {
    DecoderOnly model = random_model(small_nanogpt(has_biases), nanogpt_tokens, 1);
    const ImportedModel read = read_nanogpt(NanogptBytes(model).bytes(), "none/m.pt");
    const SafeTensors weights = SafeTensors::parse(read.weights, "model.safetensors");
    ExportedModel exported{.name = "again",
                           .config = small_nanogpt(has_biases),
                           .attention = "softmax",
                           .weights = weights,
                           .tokenizer = *ids};
    exported.config.dropout = 0.25;
    const ImportedModel again = read_nanogpt(encode_nanogpt(exported), "none/again.pt");
    CHECK(again.weights == read.weights);
    CHECK(again.settings == read.settings);
    const auto refused = [&](const std::string& reason, auto&& change) {
      exported.config = small_nanogpt(has_biases);
      change(exported.config);
      INFO(reason);
      CHECK(fault_of([&] { encode_nanogpt(exported); }) == Fault::usage);
      CHECK_THROWS_WITH(encode_nanogpt(exported), containing("a nanoGPT checkpoint needs " + reason));
    };
    refused("model.activation = gelu", [](auto& c) { c.activation = Activation::gelu_tanh; });
    refused("model.d_ff = 64", [](auto& c) { c.d_ff = 40; });
    refused("model.tie_embeddings = output", [](auto& c) { c.tie_embeddings = Tie::none; });
    refused(has_biases ? "model.norm_bias = true (or this, " : "model.attention_bias = true (or this, ",
            [&](auto& c) { c.norm_bias = !has_biases; });
  }
}

TEST_CASE("nanogpt: code in a checkpoint is refused by its name and its place, and not run") {
  DecoderOnly model = random_model(small_nanogpt(), nanogpt_tokens, 1);
  const NanogptBytes file(model);
  const Scratch room;
  const std::string canary = (room / "canary").string();
  for (const auto& [module, name] : {std::pair{"os", "system"},
                                     {"posix", "system"},
                                     {"builtins", "eval"},
                                     {"torch.nn.modules.linear", "Linear"}}) {
    const std::string bytes = file.bytes(file.pickle([&, &module = module, &name = name](PickleWriter& out) {
      out.text("x").global(module, name).begin_tuple().text("touch " + canary).end_tuple().call().set();
    }));
    check_file_refused(bytes, read_as_nanogpt,
                       text("it names ", module, ".", name, ", and only these names"));
    check_file_refused(bytes, read_as_nanogpt, "none/m.pt/data.pkl: byte ");
    CHECK_FALSE(io::exists(canary));
  }
}

TEST_CASE("nanogpt: storages that are missing, lie about their size or are shared are refused") {
  DecoderOnly model = random_model(small_nanogpt(), nanogpt_tokens, 1);
  const NanogptBytes good(model);
  const auto refused = [&](const std::string& reason, auto&& change) {
    NanogptBytes file = good;
    change(file);
    check_file_refused(file.bytes(), read_as_nanogpt, reason);
  };
  refused("the archive has no entry data/3", [](auto& f) { f.storages.erase("3"); });
  refused("the storage 3 has 17 numbers of 4 bytes by the pickle, and 64 bytes",
          [](auto& f) { f.tensors[3].count = 17; });
  refused("the storage 3 has 16 numbers of 4 bytes by the pickle, and 66 bytes",
          [](auto& f) { f.storages["3"] += "xx"; });
  refused("this is no storage", [](auto& f) { f.tensors[3].count = -1; });
  refused("tensor transformer.h.0.ln_1.bias reaches beyond its storage of 64 bytes",
          [](auto& f) { f.tensors[3].offset = 1; });
  refused("reaches beyond its storage", [](auto& f) { f.tensors[3].offset = INT64_MAX; });
  refused("reaches beyond its storage", [](auto& f) { f.tensors[3].shape = {int64_t{1} << 62, 4}; });
  refused("an extent must be 0 or more", [](auto& f) { f.tensors[3].shape = {-16}; });
  refused("tensor transformer.wpe.weight is not stored row by row", [](auto& f) {
    f.tensors[1].strides = {1, 24};
  });
  refused("tensor transformer.h.0.ln_1.bias has shape [15], and the model's settings give [16]",
          [](auto& f) { f.tensors[3].shape = {15}; });
  refused("tensor transformer.wte.weight is there twice", [](auto& f) { f.tensors[1] = f.tensors[0]; });
  refused("tensor transformer.h.0.ln_1.bias is missing",
          [](auto& f) { f.tensors.erase(f.tensors.begin() + 3); });
  refused("it names torch.QUInt8Storage", [](auto& f) { f.tensors[3].storage = "QUInt8Storage"; });
  refused("tensor transformer.h.0.ln_1.bias is f64. Weights can be f32, bf16 or f16", [](auto& f) {
    f.tensors[3].storage = "DoubleStorage";
    f.storages["3"] += f.storages["3"];
  });
  refused("the tensors of model share storages", [](auto& f) {
    for (int i = 0; i < 2000; ++i) {
      f.tensors.push_back(f.tensors[1]);
      f.tensors.back().name = text("x", i);
    }
  });
  NanogptBytes nan = good;
  nan.storages["3"].replace(8, 4, std::string("\0\0\xc0\x7f", 4));
  CHECK(fault_of([&] { read_as_nanogpt(nan.bytes()); }) == Fault::numeric);
  CHECK_THROWS_WITH(read_as_nanogpt(nan.bytes()),
                    containing("transformer.h.0.ln_1.bias is not finite at number 2"));
}

TEST_CASE("nanogpt: settings that are missing, out of range or of other models are refused by name") {
  DecoderOnly model = random_model(small_nanogpt(), nanogpt_tokens, 1);
  const NanogptBytes good(model);
  const auto refused = [&](const std::string& reason, auto&& change) {
    NanogptBytes file = good;
    change(file);
    check_file_refused(file.bytes(), read_as_nanogpt, reason);
  };
  refused("n_layer is missing", [](auto& f) { f.counts.erase(f.counts.begin()); });
  refused("n_layer is 0. It must be a whole number from 1", [](auto& f) { f.counts[0].second = 0; });
  refused("its settings give 16777216 layers, and it has ", [](auto& f) { f.counts[0].second = 1 << 24; });
  refused("n_head is 3; it must divide n_embd, 16", [](auto& f) { f.counts[1].second = 3; });
  refused("model_args has n_kv_head, which nanoGPT does not have",
          [](auto& f) { f.counts.emplace_back("n_kv_head", 1); });
  check_file_refused(good.bytes(PickleWriter().dict().finish()), read_as_nanogpt,
                     "there is no dict 'model_args'");
  check_file_refused(good.bytes(PickleWriter().integer(3).finish()), read_as_nanogpt,
                     "there is no dict 'model_args'");
  const std::string word =
      PickleWriter().dict().text("model_args").dict().text("bias").integer(2).set().set().finish();
  check_file_refused(good.bytes(word), read_as_nanogpt, "vocab_size is missing");
  check_file_refused(stored_zip({{"ckpt/other", "x"}}), read_as_nanogpt, "this archive has no data.pkl");
  check_file_refused(stored_zip({{"ckpt/data.pkl", "N."}, {"ckpt/byteorder", "big"}}), read_as_nanogpt,
                     "its byteorder is 'big'");
}

TEST_CASE("nanogpt: meta.pkl beside the checkpoint gives the characters") {
  DecoderOnly model = random_model(small_nanogpt(), nanogpt_tokens, 1);
  const std::string bytes = NanogptBytes(model).bytes();
  const Scratch room;
  const auto meta_of = [&](const std::string& characters, int64_t first = 0) {
    PickleWriter out;
    out.dict().text("vocab_size").integer(nanogpt_tokens).set().text("itos").dict();
    for (const char c : characters) out.integer(first++).text(std::string(1, c)).set();
    io::write(room / "meta.pkl", out.set().finish());
  };
  const std::string letters = "\n abcdefghijklmnop!";
  std::string sorted = letters;
  std::ranges::sort(sorted);
  meta_of(sorted);
  const ImportedModel read = read_nanogpt(bytes, room / "ckpt.pt");
  REQUIRE(read.tokenizer != nullptr);
  CHECK(read.tokenizer->encode("\n abc") == std::vector<int32_t>{0, 1, 3, 4, 5});
  CHECK(read.settings.back() == std::pair<std::string, std::string>("data.tokenizer", "character"));
  const auto refused = [&](const std::string& reason) {
    CHECK_THROWS_WITH(read_nanogpt(bytes, room / "ckpt.pt"),
                      containing("meta.pkl: byte ") && containing(reason));
  };
  meta_of(letters);
  refused("are not 19 different ones in the order of their code points");
  meta_of(sorted.substr(1));
  refused("its 18 characters are not 19 different ones");
  meta_of(sorted, 1);
  refused("the ids of itos must count up from 0");
  io::write(room / "meta.pkl", PickleWriter().dict().finish());
  refused("there is no dict 'itos'");
}

TEST_CASE("nanogpt: five thousand damaged archives, and as many pickles, are read or refused, nothing else") {
  DecoderOnly model = random_model(small_nanogpt(), nanogpt_tokens, 1);
  const NanogptBytes file(model);
  const std::string archive = file.bytes(), pickle = file.pickle();
  CHECK(refused_damages(archive, archive.size(), read_as_nanogpt) > 4000);
  CHECK(refused_damages(pickle, pickle.size(),
                        [&](const std::string& bytes) { read_as_nanogpt(file.bytes(bytes)); }) > 4000);
}

}  // namespace heed
