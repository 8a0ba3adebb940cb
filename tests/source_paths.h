// Paths of the sources and the program under test: those of the build, unless the tests run on another
// machine, where the variables HEED_TEST_SOURCES and HEED_TEST_PROGRAMS name the folders of both
// (tests/device/run.sh).
#pragma once

#include <string>

namespace heed {

/// The root of the sources under test.
std::string source_folder();

/// The program `heed` of the same build.
std::string program();

/// heed with a fault planted into training (tests/faults/heed_with_faults.cpp), of the same build.
std::string program_with_faults();

/// The program of docs/tutorials/own-program.md (tests/example/own_program.cpp), of the same build.
std::string own_program();

/// A program that calls fit() (tests/integration/programs/fit_program.cpp), of the same build.
std::string fit_program();

/// heed under the locale of its environment (tests/integration/programs/locale_program.cpp), of the same
/// build.
std::string locale_program();

}  // namespace heed
