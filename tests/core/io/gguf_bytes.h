// Builds GGUF files byte by byte.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace heed {

/// A GGUF file of version 3 in the making: metadata and tensors in the order in which they are added.
class GgufBytes {
 public:
  /// A number in little-endian order.
  template <class T>
  static std::string number(T value) {
    std::string out(sizeof value, '\0');
    std::memcpy(out.data(), &value, sizeof value);
    return out;
  }
  static std::string string(const std::string& text) { return number(uint64_t{text.size()}) + text; }

  GgufBytes& raw(const std::string& key, uint32_t type, const std::string& value) {
    metadata_ += string(key) + number(type) + value;
    ++keys_;
    return *this;
  }
  GgufBytes& whole(const std::string& key, uint32_t value) { return raw(key, 4, number(value)); }
  GgufBytes& real(const std::string& key, float value) { return raw(key, 6, number(value)); }
  GgufBytes& word(const std::string& key, const std::string& value) { return raw(key, 8, string(value)); }
  GgufBytes& words(const std::string& key, const std::vector<std::string>& values) {
    std::string list = number(uint32_t{8}) + number(uint64_t{values.size()});
    for (const std::string& value : values) list += string(value);
    return raw(key, 9, list);
  }
  /// `shape` is row-major; `type` is the number of a GgufType.
  GgufBytes& tensor(const std::string& name, const std::vector<int64_t>& shape, uint32_t type,
                    const std::string& bytes) {
    entries_ += string(name) + number(static_cast<uint32_t>(shape.size()));
    for (size_t i = shape.size(); i-- > 0;) entries_ += number(shape[i]);
    entries_ += number(type) + number(uint64_t{data_.size()});
    data_ += bytes;
    data_.resize((data_.size() + 31) / 32 * 32);
    ++tensors_;
    return *this;
  }
  GgufBytes& floats(const std::string& name, const std::vector<int64_t>& shape,
                    const std::vector<float>& values) {
    return tensor(name, shape, 0,
                  std::string(reinterpret_cast<const char*>(values.data()), 4 * values.size()));
  }
  std::string bytes() const {
    std::string out = "GGUF" + number(uint32_t{3}) + number(tensors_) + number(keys_) + metadata_ + entries_;
    out.resize((out.size() + 31) / 32 * 32);
    return out + data_;
  }

 private:
  std::string metadata_, entries_, data_;
  uint64_t keys_ = 0, tensors_ = 0;
};

}  // namespace heed
