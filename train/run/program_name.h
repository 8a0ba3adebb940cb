// The name that users call the program by, and the check of the names that a program registers.
#pragma once

#include <string>
#include <vector>

namespace heed {

/// Checks a task, command or the like that the function `caller` ("register_task") registers. A usage error
/// where the name is illegal or one of `taken`, or where `help`, its line of help, is null. Legal names have
/// 1 to 64 letters, digits, - and _, and begin with a letter or digit. From then on program_name() is the
/// name that the program was started by.
void check_registration(const char* caller, const char* name, const char* help,
                        const std::vector<std::string>& taken);

/// The name by which users call the program: "heed", or the file name of a program that has registered a
/// task, command or the like. Only that program can resume its runs, so messages that propose commands use
/// it.
std::string program_name();
/// Sets the path that the program was started by: argv[0].
void set_program_path(const char* path);

}  // namespace heed
