// NumPy's .npy files, format 1.0 to 3.0, without pickles.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/io/array.h"

namespace heed {

/// Reads the bytes of one .npy file: f32, f64, i32, i64, u8 and booleans (as u8), little-endian, in C or
/// Fortran order (the Array is row-major in either case). Fault::data naming `name` for anything else, for a
/// header beyond 64 KiB, and where the extents do not fit the file.
Array decode_npy(std::string_view bytes, std::string_view name);

/// The array as the bytes of a .npy file, in C order. There is no bf16 in this format.
std::string encode_npy(const Array& array);
/// Encodes row-major numbers as the bytes of a .npy file without a copy in an Array.
std::string encode_npy(std::string_view dtype, const std::vector<int64_t>& shape,
                       std::span<const std::byte> bytes);

Array read_npy(const Path& path);  ///< decode_npy() of a file; Fault::file where it cannot be read
/// Writes the file atomically.
void write_npy(const Path& path, const Array& array);

}  // namespace heed
