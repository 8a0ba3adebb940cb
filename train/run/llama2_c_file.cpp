// The orders of the tensors in checkpoints of llama2.c.
#include "heed/train/run/llama2_c_file.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "heed/core/io/files.h"
#include "heed/data/tokenizers/llama2_c.h"
#include "heed/train/run/llama_shape.h"
#include "heed/train/run/tensor_sequence.h"

namespace heed {
namespace {

constexpr const char* kind_of_file = "a llama2.c checkpoint";
constexpr size_t header_bytes = 256;  // the header of version 1 has so many
constexpr size_t header_0_integers = 7;
constexpr int64_t max_header_size = 1 << 24, max_tokenizer_bytes = int64_t{64} << 20;

/// The tensors of version 0 in the order of the file, by their names in GGUF. Those that begin with "blk."
/// are there for all layers before the next one follows. The angles of positions are between the norm and the
/// output layer.
constexpr const char* order_0[] = {"token_embd",   "blk.attn_norm",   "blk.attn_q",   "blk.attn_k",
                                   "blk.attn_v",   "blk.attn_output", "blk.ffn_norm", "blk.ffn_gate",
                                   "blk.ffn_down", "blk.ffn_up",      "output_norm",  "angles",
                                   "output"};
/// The tensors of version 1.
constexpr const char* order_1[] = {"blk.attn_norm", "blk.ffn_norm", "output_norm", "token_embd",
                                   "blk.attn_q",    "blk.attn_k",   "blk.attn_v",  "blk.attn_output",
                                   "blk.ffn_gate",  "blk.ffn_down", "blk.ffn_up",  "output"};

/// Gives the numbers of the file the names of `order`.
void add_in_order(TensorSequence& file, const LlamaSizes& sizes, std::span<const char* const> order) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const LlamaTensor& one : llama_tensors(sizes)) shapes.emplace(one.gguf, one.shape);
  for (const std::string_view name : order) {
    if (name == "angles") {
      for (const char* table : {"freqs_cos", "freqs_sin"})
        file.leave_out(table, {sizes.max_length, sizes.head_width / 2});
    } else if (name.starts_with("blk.")) {
      for (int64_t layer = 0; layer < sizes.layers; ++layer) {
        const std::string full = text("blk.", layer, name.substr(3), ".weight");
        file.add(full, shapes.at(full));
      }
    } else if (name != "output" || !sizes.tied) {
      const std::string full = text(name, ".weight");
      file.add(full, shapes.at(full));
    }
  }
}

}  // namespace

bool is_llama2_c_without_mark(std::string_view bytes) {
  std::array<int32_t, header_0_integers> sizes;
  if (bytes.size() < sizeof sizes) return false;
  std::memcpy(sizes.data(), bytes.data(), sizeof sizes);
  return std::ranges::all_of(sizes, [&](const int32_t& size) {
    const int64_t value = &size == &sizes[5] ? std::abs(int64_t{size}) : size;
    return value >= 1 && value <= max_header_size;
  });
}

ImportedModel read_llama2_c(std::string_view bytes, const Path& path) {
  const std::string name = path.string();
  TensorSequence file(bytes, name, kind_of_file);
  const bool has_mark = !is_llama2_c_without_mark(bytes);
  if (has_mark) {
    const int64_t mark = file.integer("its mark"), version = file.integer("version");
    if (mark != llama2_c_magic) file.refuse(0, "its mark is ", mark, "; it must be ", llama2_c_magic);
    if (version != 1)
      file.refuse(4, "version is ", version,
                  "; 0 and 1, which have f32 weights, can be read, and 2 has int8 weights: export the model "
                  "with --version 1");
  }
  LlamaSizes sizes{.norm_epsilon = 1e-5, .rope_base = 10000};
  sizes.width = file.size("dim");
  sizes.hidden = file.size("hidden_dim");
  sizes.layers = file.layers("n_layers");
  sizes.heads = file.size("n_heads");
  sizes.kv_heads = file.size("n_kv_heads");
  sizes.vocabulary = has_mark ? file.size("vocab_size") : file.integer("vocab_size");
  sizes.max_length = file.size("max_seq_len");
  const size_t first = has_mark ? 8 : 0;  // byte of dim
  sizes.tied = has_mark || sizes.vocabulary > 0;
  sizes.vocabulary = std::abs(sizes.vocabulary);
  if (has_mark) {
    const size_t at = first + header_0_integers * sizeof(int32_t);
    if (bytes.size() <= at) file.refuse(bytes.size(), "it ends before shared_classifier of its header");
    if (bytes[at] != 0 && bytes[at] != 1)
      file.refuse(at, "shared_classifier is ", static_cast<int>(bytes[at]), "; it must be 0 or 1");
    sizes.tied = bytes[at] == 1;
  }
  if (sizes.width % (2 * sizes.heads) != 0)
    file.refuse(first + 12, "n_heads is ", sizes.heads, "; dim, ", sizes.width,
                ", must be a multiple of twice that: pairs of a head's numbers are rotated");
  if (sizes.heads % sizes.kv_heads != 0)
    file.refuse(first + 16, "n_kv_heads is ", sizes.kv_heads, "; it must divide n_heads, ", sizes.heads);
  sizes.head_width = sizes.width / sizes.heads;
  file.begin_numbers(has_mark ? header_bytes : header_0_integers * sizeof(int32_t), "f32");
  add_in_order(file, sizes, has_mark ? std::span<const char* const>(order_1) : order_0);
  TensorConversion conversion(name, file.finish(), "a LLaMA of that header");
  for (const LlamaTensor& one : llama_tensors(sizes))
    conversion.put(one.heed, conversion.take(one.gguf, one.shape));
  ImportedModel out{.architecture = "LLaMA",
                    .run_name = "llama",
                    .settings = llama_settings(sizes, PositionKind::rope_interleaved),
                    .weights = conversion.encode(),
                    .vocabulary = sizes.vocabulary};
  const Path tokenizer = path.parent_path() / "tokenizer.bin";
  if (!io::exists(tokenizer)) return out;
  out.tokenizer = parse_llama2_c_tokenizer(io::read(tokenizer, max_tokenizer_bytes), tokenizer.string());
  if (out.tokenizer->size() != sizes.vocabulary)
    fail(Fault::data, tokenizer, " has ", out.tokenizer->size(), " pieces, and ", path, " ", sizes.vocabulary,
         " tokens. Take the file away, or put the tokenizer of that model there.");
  out.settings.emplace_back("data.tokenizer", "bpe");
  return out;
}

}  // namespace heed
