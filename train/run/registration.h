// What a user's program adds to the lists of this one: checks of names, and the program's own name.
#pragma once

#include <string>
#include <vector>

namespace heed {

/// Refuses an entry whose name is no name (letters, digits, - and _, a letter or digit first, at most 64) or
/// is one of `taken`, or which has no line of help. `who` begins the error: "register_task". Afterwards the
/// program has entries of its own: see program_name().
void check_registration(const char* who, const char* name, const char* about,
                        const std::vector<std::string>& taken);

/// How users call the program: "heed", or the file name of a program that has registered something. Only that
/// program can resume its runs, so messages that say what to do next name it.
std::string program_name();
/// Takes the path that the program was started by.
void set_program_path(const char* path);

}  // namespace heed
