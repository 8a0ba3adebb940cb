// What the reader and the writer of safetensors files both hold to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "heed/core/io/array.h"

namespace heed {

inline constexpr size_t max_safetensors_rank = 8;          ///< maximum extents of a tensor
inline constexpr size_t max_tensor_name_bytes = 256;       ///< maximum bytes of a name
inline constexpr std::string_view crc_prefix = "crc32c.";  ///< metadata with a tensor's check sum begins so

/// The types of tensors: as files and as an Array call them.
inline constexpr std::pair<std::string_view, std::string_view> safetensors_types[] = {
    {"F32", "f32"}, {"F64", "f64"}, {"BF16", "bf16"}, {"F16", "f16"},
    {"I32", "i32"}, {"I64", "i64"}, {"U8", "u8"}};

/// Bytes of a number; files of other programs hold f16, too.
inline int64_t safetensors_item_bytes(std::string_view dtype) {
  return dtype == "f16" ? 2 : array_item_bytes(dtype);
}

/// Whether a tensor may have this name: 1 to 256 printable bytes.
inline bool is_tensor_name(std::string_view name) {
  return !name.empty() && name.size() <= max_tensor_name_bytes &&
         std::all_of(name.begin(), name.end(), [](char letter) { return letter >= ' ' && letter <= '~'; });
}

}  // namespace heed
