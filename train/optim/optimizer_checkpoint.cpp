// Moments and step count of an optimizer as a safetensors file.
#include <cstring>

#include "heed/core/io/safetensors.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/train/optim/optimizer.h"

namespace heed {

std::string Optimizer::save() const {
  const int64_t count = steps_;
  std::vector<TensorBytes> list;
  std::vector<Tensor> kept;
  kept.reserve(3);
  const auto add = [&](const char* name, const Tensor& x) {
    if (x.size() == 0) return;
    const Tensor& here = kept.emplace_back(x.to(Device::cpu));
    list.push_back({name,
                    to_string(x.dtype()),
                    {x.size()},
                    std::span(static_cast<const std::byte*>(here.raw()), static_cast<size_t>(x.bytes()))});
  };
  add("first", first_);
  add("second", second_);
  if (average_) add("values", values_);
  const bool is_schedule_free = options_.kind == OptimizerKind::schedule_free;
  if (is_schedule_free) list.push_back({"rates", "f64", {2}, std::as_bytes(std::span(&rates_, 1))});
  if (layout_ != 0) list.push_back({"layout", "i64", {1}, std::as_bytes(std::span(&layout_, 1))});
  list.push_back({"steps", "i64", {1}, std::as_bytes(std::span(&count, 1))});
  return encode_safetensors(list);
}

void Optimizer::load(const std::string& bytes) {
  const SafeTensors file = SafeTensors::parse(bytes, "optim.safetensors");
  // Check everything before writing anything.
  const auto check = [&](const char* name, int64_t size) {
    if (size == 0) return;
    const auto found = static_cast<int64_t>(file.bytes(file.at(name)).size());
    if (found != size)
      fail(Fault::data, "optim.safetensors: ", name, " has ", found, " bytes, this model needs ", size,
           " (at byte ", file.at(name).offset, "). Resume with the configuration of the run.");
  };
  check("first", first_.bytes());
  check("second", second_.bytes());
  if (second_.size() == 0 && file.find("second") != nullptr)
    fail(
        Fault::data, "optim.safetensors: at byte ", file.at("second").offset,
        " are second moments, which this optimizer does not have. Resume with the configuration of the run.");
  check("steps", sizeof steps_);
  const bool has_values = file.find("values") != nullptr;
  if (has_values != static_cast<bool>(average_))
    fail(Fault::data, "optim.safetensors: it is of a run ", has_values ? "with" : "without",
         " a moving average of weights, and this one is ", has_values ? "without" : "with",
         " (ema, schedule_free). Resume with the configuration of the run.");
  if (average_) check("values", values_.bytes());
  int64_t layout = 0;
  if (file.find("layout") != nullptr) {
    check("layout", sizeof layout);
    std::memcpy(&layout, file.bytes(file.at("layout")).data(), sizeof layout);
  }
  if (layout != layout_)
    fail(Fault::data,
         "optim.safetensors: its groups of parameters are not those of this optimizer. Resume with "
         "the configuration of the run.");
  const bool is_schedule_free = options_.kind == OptimizerKind::schedule_free;
  if (is_schedule_free) check("rates", sizeof rates_);
  const auto put = [&](const char* name, const Tensor& to) {
    if (to.size() == 0) return;
    const Tensor saved(to.shape(), to.dtype(), Device::cpu);
    std::memcpy(saved.raw(), file.bytes(file.at(name)).data(), static_cast<size_t>(saved.bytes()));
    launch<kernel::Copy>(to.device(), saved.to(to.device()), to);
  };
  put("first", first_);
  put("second", second_);
  if (average_) {
    launch<kernel::Copy>(values_.device(), values_, average_);  // the model's file has the averaged weights
    put("values", values_);
  }
  if (is_schedule_free) std::memcpy(&rates_, file.bytes(file.at("rates")).data(), sizeof rates_);
  std::memcpy(&steps_, file.bytes(file.at("steps")).data(), sizeof steps_);
}

}  // namespace heed
