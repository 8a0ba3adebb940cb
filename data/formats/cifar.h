// CIFAR-10 in its binary form, as grey pixels.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "data/sequences.h"

namespace heed {

/// What CIFAR-10's labels mean, in their order.
inline constexpr std::array<const char*, 10> cifar_classes{
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};

/// Records of one label byte and 32 x 32 pixels: grey ones of 1,024 bytes, or the publisher's of a red, a
/// green and a blue plane, which become floor(255.5 (0.2989 R + 0.5870 G + 0.1140 B) / 255). Fault::data when
/// the size is not whole records or a label is not below 10.
Sequences parse_cifar(std::string_view bytes, bool colour, std::string_view name);

/// CIFAR-10 out of a folder: data_batch_1.bin to data_batch_5.bin and test_batch.bin, or in grey train*.bin
/// in the order of their names and test.bin; with or without .gz.
Sequences read_cifar(const Path& folder, bool test);

/// Writes train.bin and test.bin of grey records.
void write_cifar(const Path& folder, const Sequences& train, const Sequences& test);

}  // namespace heed
