// CIFAR-10's binary format, as grey pixels.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "heed/data/text/labelled_sequences.h"

namespace heed {

/// The classes of CIFAR-10, by label.
inline constexpr std::array<const char*, 10> cifar_classes{
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};

/// Parses records of one label byte and 32 x 32 pixels: grey ones of 1,024 bytes, or the publisher's red,
/// green and blue planes, converted to floor(255.5 (0.2989 R + 0.5870 G + 0.1140 B) / 255). Fault::data when
/// the size is no multiple of a record or a label is not below 10.
Sequences parse_cifar(std::string_view bytes, bool colour, std::string_view name);

/// Reads CIFAR-10 from a folder: data_batch_1.bin to data_batch_5.bin and test_batch.bin, or grey train*.bin,
/// ordered by name, and test.bin; also with .gz.
Sequences read_cifar(const Path& folder, bool test);

/// Writes train.bin and test.bin of grey records.
void write_cifar(const Path& folder, const Sequences& train, const Sequences& test);

}  // namespace heed
