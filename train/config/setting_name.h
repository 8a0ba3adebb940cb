// The name of a training setting in errors: its key, or the C++ member that holds it.
#pragma once

#include <string>
#include <string_view>

namespace heed {

/// The name of a key such as "train.batch_size" for its user: in fit() the member that is set there,
/// "DataLoaderOptions::batch_size"; elsewhere, and for keys that fit() does not have, the key itself.
std::string setting_name(std::string_view key);

/// A value to try, with its setting: "--batch-size 8 (train.batch_size, now 16)" where there is a command
/// line, whose option is `option`, and "DataLoaderOptions::batch_size = 8 (now 16)" in fit().
std::string setting_advice(std::string_view key, std::string_view option, int64_t value, int64_t now);

}  // namespace heed
