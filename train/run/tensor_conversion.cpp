// Takes tensors of files, and encodes what they became.
#include "heed/train/run/tensor_conversion.h"

#include <algorithm>
#include <cmath>

#include "heed/core/io/float_bytes.h"
#include "heed/core/io/json.h"

namespace heed {
namespace {

/// Bytes of a file of all tensors as f32, about, so that it is made without being moved.
template <class T>
int64_t f32_bytes(const std::vector<T>& tensors) {
  constexpr int64_t header_bytes = 1024;  // a tensor and its check sum take so many
  int64_t sum = 0;
  for (const T& tensor : tensors)
    sum += std::max<int64_t>(array_bytes(tensor.shape, sizeof(float)), 0) + header_bytes;
  return sum;
}

int64_t f32_bytes(const std::vector<SafeTensors>& files) {
  int64_t sum = 0;
  for (const SafeTensors& file : files) sum += f32_bytes(file.entries());
  return sum;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return Json(Json::List(shape.begin(), shape.end())).dump();
}

}  // namespace

TensorConversion::TensorConversion(const TensorFiles& files, std::string model)
    : file_(files.name), model_(std::move(model)), made_(f32_bytes(files.files)) {
  for (const SafeTensors& file : files.files) {
    for (const TensorEntry& entry : file.entries()) {
      add({entry.name, entry.shape, [&file, &entry] {
             file.check_finite(entry);
             return file.floats(entry);
           }});
    }
  }
}

TensorConversion::TensorConversion(const GgufFile& file, std::string model)
    : file_(file.name()), model_(std::move(model)), made_(f32_bytes(file.tensors())) {
  for (const GgufTensor& tensor : file.tensors())
    remaining_[tensor.name] = {tensor.name, tensor.shape, [&file, &tensor] { return file.values(tensor); }};
}

TensorConversion::TensorConversion(std::string file, std::vector<TensorSource> tensors, std::string model)
    : file_(std::move(file)), model_(std::move(model)), made_(f32_bytes(tensors)) {
  for (TensorSource& tensor : tensors) add(std::move(tensor));
}

void TensorConversion::add(TensorSource tensor) {
  const std::string name = tensor.name;
  if (!remaining_.emplace(name, std::move(tensor)).second)
    fail(Fault::data, file_, ": tensor ", shown(name), " is there twice. Save the model again.");
}

bool TensorConversion::has_prefix(std::string_view prefix) const {
  const auto found = remaining_.lower_bound(std::string(prefix));
  return found != remaining_.end() && found->first.starts_with(prefix);
}

void TensorConversion::leave_out(const std::function<bool(std::string_view)>& is_left_out) {
  std::erase_if(remaining_, [&](const auto& entry) { return is_left_out(entry.first); });
}

FloatTensor TensorConversion::take(const std::string& name, const std::vector<int64_t>& shape) {
  const auto found = remaining_.find(name);
  if (found == remaining_.end())
    fail(Fault::data, file_, ": tensor ", name, " is missing. Give the file of a whole model, ", model_, ".");
  if (found->second.shape != shape)
    fail(Fault::data, file_, ": tensor ", name, " has shape ", shape_text(found->second.shape),
         ", and the model's settings give ", shape_text(shape), ".");
  FloatTensor out{.shape = shape, .numbers = found->second.numbers()};
  remaining_.erase(found);
  return out;
}

void TensorConversion::put(const std::string& name, const FloatTensor& tensor) {
  made_.add({name, "f32", tensor.shape, std::as_bytes(std::span(tensor.numbers))});
}

std::string TensorConversion::encode() {
  if (!remaining_.empty())
    fail(Fault::data, file_, ": tensor ", shown(remaining_.begin()->first),
         remaining_.size() > 1 ? text(" and ", remaining_.size() - 1, " others are") : " is", " none of ",
         model_, ". Such a model cannot be read.");
  return std::move(made_).finish();
}

std::vector<float> finite_floats(std::span<const std::byte> bytes, std::string_view dtype,
                                 const std::string& file, const std::string& tensor) {
  if (float_bytes(dtype) == 0)
    fail(Fault::data, file, ": tensor ", shown(tensor), " is ", dtype,
         ". Weights can be f32, bf16 or f16: save the model in one of these.");
  std::vector<float> out = floats_of(bytes, dtype);
  const auto bad = std::ranges::find_if(out, [](float x) { return !std::isfinite(x); });
  if (bad != out.end())
    fail(Fault::numeric, file, ": tensor ", shown(tensor), " is not finite at number ", bad - out.begin(),
         ". Fetch the file again, or take another checkpoint.");
  return out;
}

FloatTensor transposed(const FloatTensor& x) {
  const auto rows = static_cast<size_t>(x.shape[0]), columns = static_cast<size_t>(x.shape[1]);
  FloatTensor out{.shape = {x.shape[1], x.shape[0]}, .numbers = std::vector<float>(x.numbers.size())};
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) out.numbers[j * rows + i] = x.numbers[i * columns + j];
  }
  return out;
}

}  // namespace heed
