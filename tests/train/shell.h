// The program in a folder of its own, with what it printed and its exit code.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/io.h"
#include "tests/catch.h"
#include "tests/places.h"
#include "tests/scratch.h"

extern char** environ;

namespace heed {

struct Result {
  int code = -1;
  std::string out, err;
};

/// The program in a folder of its own.
struct Shell {
  Scratch scratch;
  std::vector<std::string> before = {};  ///< what starts the program, such as mpirun with its options

  pid_t start(const std::vector<std::string>& words, const std::string& input = "") const {
    io::write(scratch / "input", input);
    std::vector<std::string> all{"env", "-C", scratch.path().string()};
    all.insert(all.end(), before.begin(), before.end());
    all.push_back(program());
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

/// The words, and more.
inline std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Wrong input: this code, these words in one to three lines on standard error, nothing on standard output.
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
