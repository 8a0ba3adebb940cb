// Copies weights between models whose attentions differ.
#include "heed/nn/weight_transfer.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "heed/core/io/safetensors.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/nn/attention.h"

namespace heed {
namespace {

/// The dotted names of all attentions in a module.
class AttentionNames final : public Fields {
 public:
  std::vector<std::string> found;

 private:
  void on(const char* name, Module& child) override {
    const std::string outer = prefix_;
    prefix_ = outer.empty() ? name : outer + "." + name;
    if (dynamic_cast<Attention*>(&child) != nullptr) found.push_back(prefix_ + ".");
    child.fields(*this);
    prefix_ = outer;
  }
  std::string prefix_;
};

std::string shape_text(const TensorEntry& entry) {
  std::string out;
  for (const int64_t extent : entry.shape) out += text(out.empty() ? "" : ", ", extent);
  return text(entry.dtype, " [", out, "]");
}

bool agree(const TensorEntry& entry, const Tensor& x) {
  return entry.dtype == to_string(x.dtype()) &&
         std::equal(entry.shape.begin(), entry.shape.end(), x.shape().begin(), x.shape().end());
}

void overwrite(Tensor& x, std::span<const std::byte> numbers) {
  const Tensor saved(x.shape(), x.dtype(), Device::cpu);
  std::memcpy(saved.raw(), numbers.data(), numbers.size());
  launch<kernel::Copy>(x.device(), saved.to(x.device()), x);
  ++x.storage()->version;
}

}  // namespace

WeightTransfer transfer_weights(Module& model, const std::string& bytes, const std::string& name) {
  const SafeTensors file = SafeTensors::parse(bytes, name);
  AttentionNames attentions;
  model.fields(attentions);
  const auto of_attention = [&](const std::string& tensor) {
    return std::any_of(attentions.found.begin(), attentions.found.end(),
                       [&](const std::string& prefix) { return tensor.starts_with(prefix); });
  };
  WeightTransfer done;
  std::vector<std::string> refused;
  std::set<std::string> wanted;
  const std::vector<Named> all = tensors(model);
  for (const Named& named : all) {
    wanted.insert(named.name);
    const TensorEntry* entry = file.find(named.name);
    if (entry != nullptr && agree(*entry, *named.tensor)) {
      done.copied.push_back(named.name);
    } else if (entry != nullptr) {
      refused.push_back(text(named.name, " is ", shape_text(*entry), " there and ", named.tensor->dtype(),
                             " ", named.tensor->shape(), " here"));
    } else if (of_attention(named.name)) {
      done.initialised.push_back(named.name);
    } else {
      refused.push_back(text(named.name, " ", named.tensor->shape(), " is missing there"));
    }
  }
  for (const TensorEntry& entry : file.entries()) {
    if (wanted.contains(entry.name)) continue;
    if (of_attention(entry.name))
      done.unused.push_back(entry.name);
    else
      refused.push_back(text(entry.name, " ", shape_text(entry), " is missing here"));
  }
  if (!refused.empty()) {
    constexpr size_t most = 6;
    std::string list;
    for (size_t i = 0; i < std::min(most, refused.size()); ++i) list += (i > 0 ? "; " : "") + refused[i];
    if (refused.size() > most) list += text("; and ", refused.size() - most, " more");
    fail(name, ": the weights do not fit this model: ", list,
         ".\nOnly attentions may differ. Keep the sizes ",
         "that the weights were trained with, and take an attention whose projections have their shapes.");
  }
  for (const std::string& copied : done.copied) file.check_finite(file.at(copied));
  for (const std::string& copied : done.copied) {
    const auto place = std::find_if(all.begin(), all.end(), [&](const Named& n) { return n.name == copied; });
    overwrite(*place->tensor, file.bytes(file.at(copied)));
  }
  return done;
}

}  // namespace heed
