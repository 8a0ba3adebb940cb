// Runs the program in a temporary folder.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "heed/core/io/files.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/source_paths.h"

extern char** environ;

namespace heed {

/// The words of a command line.
inline std::vector<std::string> command_words(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

struct Result {
  int code = -1;
  std::string out, err;
};

/// Runs the program in its own folder, with its output and exit code.
struct Shell {
  Scratch scratch;
  std::vector<std::string> before = {};  ///< what starts the program, such as mpirun with its options
  std::vector<std::string> started = {program()};  ///< heed, or heed_with_faults and its fault

  /// Runs `words` in the folder with a fault planted into the training: see FaultInjection.
  Result run_with_fault(const std::string& fault, const std::vector<std::string>& words) {
    started = {program_with_faults(), fault};
    Result result = run(words);
    started = {program()};
    return result;
  }

  pid_t start(const std::vector<std::string>& words, const std::string& input = "") const {
    io::write(scratch / "input", input);
    std::vector<std::string> all{"env", "-C", scratch.path().string()};
    all.insert(all.end(), before.begin(), before.end());
    all.insert(all.end(), started.begin(), started.end());
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char*> arguments;
    for (std::string& word : all) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_addopen(&files, 0, (scratch / "input").c_str(), O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&files, 1, (scratch / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                       0600);
    ::posix_spawn_file_actions_addopen(&files, 2, (scratch / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                       0600);
    pid_t child = 0;
    REQUIRE(::posix_spawnp(&child, "env", &files, nullptr, arguments.data(), environ) == 0);
    ::posix_spawn_file_actions_destroy(&files);
    return child;
  }

  Result end(pid_t child) const {
    Result result;
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    result.out = io::read(scratch / "out");
    result.err = io::read(scratch / "err");
    return result;
  }

  Result run(const std::vector<std::string>& words, const std::string& input = "") const {
    return end(start(words, input));
  }
};

/// A text whose lines that continue another one, and begin with `indent`, are joined to it.
inline std::string unwrapped(std::string words, const std::string& indent = "    ") {
  const std::string next = "\n" + indent;
  for (size_t at; (at = words.find(next)) != std::string::npos;) words.replace(at, next.size(), " ");
  return words;
}

/// Both lists in one.
inline std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Runs with wrong input: checks for this exit code, an error of one to three lines with these parts, and no
/// output.
inline void check_refused(const Shell& shell, const std::vector<std::string>& words, int code,
                          const std::vector<std::string>& parts) {
  std::string line;
  for (const std::string& word : words) line += word + " ";
  CAPTURE(line);
  const Result result = shell.run(words);
  CHECK(result.code == code);
  CHECK(result.out.empty());
  CHECK(result.err.starts_with("error: "));
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') <= 3);
  for (const std::string& part : parts) CHECK_THAT(result.err, containing(part));
}

}  // namespace heed
