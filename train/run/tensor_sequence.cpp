// Checks each tensor against the end of the file before anything is made of it.
#include "heed/train/run/tensor_sequence.h"

#include <algorithm>
#include <cstring>

#include "heed/core/io/array.h"
#include "heed/core/io/float_bytes.h"

namespace heed {
namespace {

constexpr int64_t max_size = 1 << 24;  // limit of an extent of a model's tensors

}  // namespace

TensorSequence::TensorSequence(std::string_view bytes, const std::string& name, std::string kind)
    : bytes_(bytes), name_(name), kind_(std::move(kind)) {}

int64_t TensorSequence::integer(const char* field) {
  int32_t value;
  if (bytes_.size() - at_ < sizeof value) refuse(at_, "it ends before ", field, " of its header");
  std::memcpy(&value, bytes_.data() + at_, sizeof value);
  at_ += sizeof value;
  return value;
}

int64_t TensorSequence::size(const char* field) {
  const int64_t value = integer(field);
  if (value < 1 || value > max_size)
    refuse(at_ - sizeof(int32_t), field, " is ", value, "; it must be 1 to ", max_size);
  return value;
}

int64_t TensorSequence::layers(const char* field) {
  constexpr size_t min_layer_bytes = 32;  // a layer has 9 tensors or more
  const int64_t value = size(field);
  const auto room = static_cast<int64_t>(bytes_.size() / min_layer_bytes);
  if (value > std::min(room, max_tensors))
    refuse(at_ - sizeof(int32_t), field, " is ", value, "; a file of ", bytes_.size(), " bytes has at most ",
           std::min(room, max_tensors), " layers");
  return value;
}

void TensorSequence::begin_numbers(size_t offset, std::string_view dtype) {
  if (bytes_.size() < offset) refuse(bytes_.size(), "its header has ", offset, " bytes, and it ends before");
  at_ = offset;
  dtype_ = dtype;
}

std::string_view TensorSequence::take(const std::string& name, const std::vector<int64_t>& shape) {
  const int64_t needed = array_bytes(shape, static_cast<int64_t>(float_bytes(dtype_)));
  const size_t left = bytes_.size() - at_;
  if (needed < 0 || static_cast<uint64_t>(needed) > left)
    refuse(at_, "tensor ", name, " has ", needed < 0 ? std::string("more than 2^62") : text(needed),
           " bytes by the header's sizes, and ", left, " follow: it is cut short, or its sizes are wrong");
  const std::string_view out = bytes_.substr(at_, static_cast<size_t>(needed));
  at_ += out.size();
  return out;
}

void TensorSequence::add(const std::string& name, const std::vector<int64_t>& shape) {
  add_padded(name, shape, 0);
}

void TensorSequence::add_padded(const std::string& name, const std::vector<int64_t>& shape, int64_t rows) {
  const auto held = std::as_bytes(std::span(take(name, shape)));
  if (rows > 0) {
    std::vector<int64_t> padding = shape;
    padding[0] = rows;
    take(name, padding);
  }
  tensors_.push_back({name, shape, [held, dtype = dtype_, file = name_, name] {
                        return finite_floats(held, dtype, file, name);
                      }});
}

std::vector<TensorSource> TensorSequence::finish() {
  if (at_ != bytes_.size())
    refuse(at_, bytes_.size() - at_, " bytes follow its last tensor, so its sizes are wrong");
  return std::move(tensors_);
}

}  // namespace heed
