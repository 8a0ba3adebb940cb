// The order of the tensors in a checkpoint of llm.c.
#include "heed/train/run/llm_c_file.h"

#include <cstring>
#include <map>

#include "heed/train/run/gpt2_shape.h"
#include "heed/train/run/tensor_sequence.h"

namespace heed {
namespace {

constexpr size_t header_integers = 256;
constexpr int64_t f32_version = 3, bf16_version = 5;
constexpr int64_t rows_multiple = 128;  // llm.c pads the table of embeddings to a multiple of so many rows

/// A tensor of each layer, by its name behind "h.N.". Its rows and columns are multiples of the width; a
/// vector has no columns.
struct LlmCTensor {
  const char* name;
  int64_t rows, columns;
};

/// The tensors in the order of the file; each is there for all layers before the next one follows.
constexpr LlmCTensor in_each_layer[] = {
    {"ln_1.weight", 1, 0},      {"ln_1.bias", 1, 0},          {"attn.c_attn.weight", 3, 1},
    {"attn.c_attn.bias", 3, 0}, {"attn.c_proj.weight", 1, 1}, {"attn.c_proj.bias", 1, 0},
    {"ln_2.weight", 1, 0},      {"ln_2.bias", 1, 0},          {"mlp.c_fc.weight", 4, 1},
    {"mlp.c_fc.bias", 4, 0},    {"mlp.c_proj.weight", 1, 4},  {"mlp.c_proj.bias", 1, 0},
};

/// The names of all tensors between the tables and the end, in the order of the file.
std::vector<std::pair<std::string, std::vector<int64_t>>> tensors_in_order(const Gpt2Config& sizes) {
  std::vector<std::pair<std::string, std::vector<int64_t>>> out;
  const int64_t width = sizes.width;
  for (const auto& [name, rows, columns] : in_each_layer) {
    std::vector<int64_t> shape{rows * width};
    if (columns > 0) shape.push_back(columns * width);
    for (int64_t layer = 0; layer < sizes.layers; ++layer)
      out.emplace_back(text("h.", layer, ".", name), shape);
  }
  out.emplace_back("ln_f.weight", std::vector<int64_t>{width});
  out.emplace_back("ln_f.bias", std::vector<int64_t>{width});
  return out;
}

}  // namespace

ImportedModel read_llm_c(std::string_view bytes, const std::string& name) {
  TensorSequence file(bytes, name, "an llm.c checkpoint");
  const int64_t magic = file.integer("its mark"), version = file.integer("version");
  if (magic != llm_c_magic) file.refuse(0, "its mark is ", magic, "; it must be ", llm_c_magic);
  if (version != f32_version && version != bf16_version)
    file.refuse(4, "version is ", version, "; ", f32_version, " (f32) and ", bf16_version,
                " (bf16) can be read");
  Gpt2Config sizes;
  sizes.positions = file.size("max_seq_len");
  sizes.vocabulary = file.size("vocab_size");
  sizes.layers = file.layers("num_layers");
  sizes.heads = file.size("num_heads");
  sizes.width = file.size("channels");
  sizes.hidden = 4 * sizes.width;
  const int64_t padded = file.size("padded_vocab_size");
  if (padded < sizes.vocabulary)
    file.refuse(28, "padded_vocab_size is ", padded, ", less than vocab_size, ", sizes.vocabulary);
  if (sizes.width % sizes.heads != 0)
    file.refuse(20, "num_heads is ", sizes.heads, "; it must divide channels, ", sizes.width);
  file.begin_numbers(header_integers * sizeof(int32_t), version == f32_version ? "f32" : "bf16");
  file.add_padded("wte.weight", {sizes.vocabulary, sizes.width}, padded - sizes.vocabulary);
  file.add("wpe.weight", {sizes.positions, sizes.width});
  for (const auto& [tensor, shape] : tensors_in_order(sizes)) file.add(tensor, shape);
  TensorConversion conversion(name, file.finish(), "a GPT-2 of that header");
  convert_gpt2(conversion, sizes, {.prefix = "", .is_in_out = false});
  return {.architecture = "GPT-2",
          .run_name = "gpt2",
          .settings = gpt2_settings(sizes, true),
          .weights = conversion.encode(),
          .vocabulary = sizes.vocabulary};
}

std::string encode_llm_c(const ExportedModel& model) {
  const Gpt2Config sizes = gpt2_sizes(model, {.name = "an llm.c checkpoint", .is_strict = true});
  const int64_t padded = (sizes.vocabulary + rows_multiple - 1) / rows_multiple * rows_multiple;
  int32_t header[header_integers] = {llm_c_magic,
                                     static_cast<int32_t>(f32_version),
                                     static_cast<int32_t>(sizes.positions),
                                     static_cast<int32_t>(sizes.vocabulary),
                                     static_cast<int32_t>(sizes.layers),
                                     static_cast<int32_t>(sizes.heads),
                                     static_cast<int32_t>(sizes.width),
                                     static_cast<int32_t>(padded)};
  std::string out(reinterpret_cast<const char*>(header), sizeof header);
  std::map<std::string, FloatTensor> made;
  for (auto& [name, tensor] : gpt2_tensors(model, sizes, {.prefix = "", .is_in_out = false}))
    made.emplace(name, std::move(tensor));
  const auto put = [&](const std::string& name) {
    const std::vector<float>& numbers = made.at(name).numbers;
    out.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
  };
  put("wte.weight");
  out.append(static_cast<size_t>((padded - sizes.vocabulary) * sizes.width) * sizeof(float), '\0');
  put("wpe.weight");
  for (const auto& [name, shape] : tensors_in_order(sizes)) put(name);
  return out;
}

}  // namespace heed
