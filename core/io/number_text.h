// Doubles as text that is read back.
#pragma once

#include <string>

namespace heed {

/// The shortest text that reads back as this very double; nan, inf or -inf where it is not finite. Messages
/// write numbers as they are best read, which for floats is shorter: see detail::number.
std::string exact_number(double value);

}  // namespace heed
