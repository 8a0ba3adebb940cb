// System calls of a program, listed and disturbed one by one by strace.
#pragma once

#include <string>
#include <vector>

#include "heed/tests/scorecard/scorecard.h"

namespace heed::scorecard {

/// The calls that change files, for strace.
inline constexpr const char* changing_calls =
    "openat,write,pwrite64,fsync,rename,renameat2,close,unlink,unlinkat,rmdir,mkdir,ftruncate,flock";

/// One call of a program: the nth of its name.
struct SystemCall {
  std::string name;
  int64_t when = 0;
};

/// Why strace cannot be used here; empty where it can.
std::string why_no_strace();

/// heed with these arguments under strace, which gets the options `how`.
Command traced(const Scene& scene, const std::vector<std::string>& words,
               const std::vector<std::string>& how);

/// The command that runs `words` and is killed at a system call.
Command killed_at(const Scene& scene, const std::vector<std::string>& words, const SystemCall& call);

/// Every call with one of these names that the program makes from the first that names the folder of runs to
/// the first that names `until`, or to its end; the loader's come before that.
std::vector<SystemCall> calls_of(const Scene& scene, const std::vector<std::string>& words, const char* names,
                                 const std::string& until = "");

}  // namespace heed::scorecard
