// Where the tests find what they look at from outside.
#pragma once

#include <string>

namespace heed {

/// The root of the sources under test.
std::string source_folder();

/// The program `heed` of the same build.
std::string program();

}  // namespace heed
