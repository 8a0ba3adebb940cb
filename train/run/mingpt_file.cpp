// The members of a minGPT in JSON.
#include "heed/train/run/mingpt_file.h"

#include "heed/core/io/base64.h"
#include "heed/core/io/json.h"
#include "heed/train/run/gpt2_shape.h"
#include "heed/train/run/model_settings.h"

namespace heed {
namespace {

constexpr const char* settings_member = "config";

Gpt2Config sizes_in(const Json& json, const std::string& name) {
  const std::string place = name + ": " + settings_member;
  const ModelSettings config(json, place);
  Gpt2Config out{.vocabulary = config.count("vocab_size"),
                 .positions = config.count("block_size"),
                 .width = config.count("n_embd"),
                 .layers = config.count("n_layer"),
                 .heads = config.count("n_head"),
                 .dropout = config.fraction("resid_pdrop", 0.1),
                 .attention_dropout = config.fraction("attn_pdrop", 0.1)};
  out.hidden = 4 * out.width;
  if (out.width % out.heads != 0)
    fail(Fault::data, place, ": n_head is ", out.heads, "; it must divide n_embd, ", out.width, ".");
  return out;
}

/// A member of a tensor.
const Json& member_of(const JsonMember& tensor, const char* key, const std::string& name) {
  const Json* found = tensor.value.is_object() ? tensor.value.find(key) : nullptr;
  if (found == nullptr)
    fail(Fault::data, name, ": ", shown(tensor.key), " is no tensor: it has no ", key,
         ". Give a file of config and tensors.");
  return *found;
}

/// A tensor of the file, which must outlive it.
TensorSource tensor_of(const JsonMember& member, const std::string& name) {
  const Json &shape = member_of(member, "shape", name), &dtype = member_of(member, "dtype", name),
             &data = member_of(member, "data", name);
  if (dtype.dump() != "\"torch.float32\"" || !shape.is_list() || !data.is_text())
    fail(Fault::data, name, ": tensor ", shown(member.key), " has the dtype ", shown(dtype.dump()),
         "; torch.float32 with a list as its shape and data in base64 can be read.");
  TensorSource out{.name = member.key, .shape = {}, .numbers = {}};
  for (const Json& extent : shape.list()) {
    if (!extent.is_integer() || extent.integer() < 0)
      fail(Fault::data, name, ": tensor ", shown(member.key), " has the shape ", shown(shape.dump()), ".");
    out.shape.push_back(extent.integer());
  }
  const int64_t needed = array_bytes(out.shape, sizeof(float));
  if (needed < 0 || needed > static_cast<int64_t>(data.text().size()))
    fail(Fault::data, name, ": tensor ", shown(member.key), " has fewer numbers than its shape ",
         shown(shape.dump()), " needs.");
  out.numbers = [&data, &key = member.key, &name, needed] {
    const auto bytes = from_base64(data.text());
    if (!bytes || static_cast<int64_t>(bytes->size()) != needed)
      fail(Fault::data, name, ": tensor ", shown(key), ": data is no base64 of ", needed, " bytes.");
    return finite_floats(std::as_bytes(std::span(*bytes)), "f32", name, key);
  };
  return out;
}

}  // namespace

ImportedModel read_mingpt(std::string_view bytes, const std::string& name) {
  const Json json = parse_json(bytes, name);
  const Json* config = json.find(settings_member);
  if (config == nullptr)
    fail(Fault::data, name, ": there is no ", settings_member, ". Give a minGPT with its config.");
  const Gpt2Config sizes = sizes_in(*config, name);
  std::vector<TensorSource> tensors;
  for (const JsonMember& member : json.members()) {
    if (member.key != settings_member) tensors.push_back(tensor_of(member, name));
  }
  TensorConversion conversion(name, std::move(tensors), "a minGPT of that config");
  const bool is_tied = convert_gpt2(conversion, sizes, {.prefix = "transformer.", .is_in_out = false});
  return {.architecture = "GPT-2",
          .run_name = "mingpt",
          .settings = gpt2_settings(sizes, is_tied),
          .weights = conversion.encode(),
          .vocabulary = sizes.vocabulary};
}

}  // namespace heed
