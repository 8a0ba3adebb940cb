// Writes a LLaMA as llama.cpp's converter would.
#include "heed/tests/train/llama_file.h"

#include "heed/attention/variant.h"

namespace heed {

TransformerConfig small_llama(Tie tie) {
  return {.d_model = 16,
          .heads = 4,
          .kv_heads = 2,
          .d_ff = 24,
          .layers = 2,
          .max_length = 24,
          .dropout = 0,
          .activation = Activation::swiglu,
          .norm_scale = kernel::NormScale::rms,
          .position = PositionKind::rope_interleaved,
          .modifiers = {.position_base = 5000},
          .init = Init::normal,
          .tie_embeddings = tie,
          .scale_embedding = false,
          .feed_forward_bias = false,
          .output_bias = false};
}

std::vector<std::string> llama_tokens() {
  std::vector<std::string> out{"<|endoftext|>", "\u0120",
                               "\u010A"};  // GPT-2's spelling of blank and line end
  for (char letter = 'a'; letter <= 'z'; ++letter) out.emplace_back(1, letter);
  out.insert(out.end(), {"th", "the"});
  return out;
}

GgufBytes llama_metadata() {
  GgufBytes out;
  out.word("general.architecture", "llama")
      .whole("llama.block_count", 2)
      .whole("llama.context_length", 24)
      .whole("llama.embedding_length", 16)
      .whole("llama.feed_forward_length", 24)
      .whole("llama.attention.head_count", 4)
      .whole("llama.attention.head_count_kv", 2)
      .whole("llama.rope.dimension_count", 4)
      .real("llama.rope.freq_base", 5000)
      .real("llama.attention.layer_norm_rms_epsilon", 1e-5f)
      .word("tokenizer.ggml.model", "gpt2")
      .word("tokenizer.ggml.pre", "smollm")
      .words("tokenizer.ggml.tokens", llama_tokens())
      .words("tokenizer.ggml.merges", {"t h", "th e"});
  return out;
}

void add_llama_tensors(GgufBytes& file, DecoderOnly& model) {
  const std::pair<const char*, const char*> names[] = {{"embedder.tokens.weight", "token_embd.weight"},
                                                       {"decoder.norm.gain", "output_norm.weight"},
                                                       {"output.weight", "output.weight"},
                                                       {"attention_norm.gain", "attn_norm.weight"},
                                                       {"attention.query.weight", "attn_q.weight"},
                                                       {"attention.key.weight", "attn_k.weight"},
                                                       {"attention.value.weight", "attn_v.weight"},
                                                       {"attention.output.weight", "attn_output.weight"},
                                                       {"forward_norm.gain", "ffn_norm.weight"},
                                                       {"feed_forward.gate.weight", "ffn_gate.weight"},
                                                       {"feed_forward.up.weight", "ffn_up.weight"},
                                                       {"feed_forward.down.weight", "ffn_down.weight"}};
  constexpr std::string_view blocks = "decoder.blocks.";
  for (const Named& named : tensors(model)) {
    std::string name = named.name, prefix;
    if (name.starts_with(blocks)) {
      prefix = text("blk.", name[blocks.size()], ".");
      name = name.substr(blocks.size() + 2);
    }
    const Shape& shape = named.tensor->shape();
    const std::vector<int64_t> extents(shape.begin(), shape.end());
    for (const auto& [heed, gguf] : names) {
      if (name == heed) file.floats(prefix + gguf, extents, named.tensor->to_host());
    }
  }
}

std::string llama_file(Tie tie) {
  Rng rng(1);
  DecoderOnly model(small_llama(tie), static_cast<int64_t>(llama_tokens().size()),
                    attention_factory("softmax"), rng);
  GgufBytes file = llama_metadata();
  add_llama_tensors(file, model);
  return file.bytes();
}

}  // namespace heed
