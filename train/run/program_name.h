// The name that users call the program by, and the check of names that a program registers.
#pragma once

#include <string>
#include <vector>

namespace heed {

/// A usage error for an entry whose name is illegal (letters, digits, - and _, a letter or digit first, at
/// most 64) or one of `taken`, or which has no line of help. `who` begins the error: "register_task".
/// Afterwards program_name() is the program's own name.
void check_registration(const char* who, const char* name, const char* about,
                        const std::vector<std::string>& taken);

/// How users call the program: "heed", or the file name of a program that has registered something. Only that
/// program can resume its runs, so messages that say what to do next name it.
std::string program_name();
/// Sets the path that the program was started by.
void set_program_path(const char* path);

}  // namespace heed
