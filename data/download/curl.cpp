// Runs curl without a shell.
#include "heed/data/download/curl.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "heed/core/io/files.h"
#include "heed/data/text/text.h"

extern char** environ;

namespace heed {
namespace {

/// How a program ended, and its error output.
struct Ended {
  int code = 0;  ///< exit status, when no signal ended it
  int signal = 0;
  std::string output;
};

/// Limits the files that the program writes to `bytes`: the kernel then ends it with SIGXFSZ, here without a
/// core file. It may have started already: the limit applies at each write.
void bound_files(pid_t program, int64_t bytes) {
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  rlimit size{};
  bool done = prlimit(program, RLIMIT_CORE, &none, nullptr) == 0 &&
              prlimit(program, RLIMIT_FSIZE, nullptr, &size) == 0;
  size.rlim_cur = size.rlim_max = std::min(size.rlim_cur, static_cast<rlim_t>(bytes));
  done = done && prlimit(program, RLIMIT_FSIZE, &size, nullptr) == 0;
  if (done || errno == ESRCH) return;  // the program has ended
  const int why = errno;
  kill(program, SIGKILL);
  while (waitpid(program, nullptr, 0) < 0 && errno == EINTR) {
  }
  fail(Fault::file, "the size of a download cannot be bounded: prlimit: ", std::strerror(why),
       ". Fetch the file by other means.");
}

/// Runs a program whose files cannot grow beyond `max_bytes`.
Ended run(std::vector<std::string> words, int64_t max_bytes) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail(Fault::file, "cannot make a pipe: ", std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int started = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (started != 0) {
    close(ends[0]);
    fail(Fault::file, "the program '", words[0], "' cannot be started: ", std::strerror(started),
         ". Install it (Debian: apt-get install curl), or fetch ", words.back(), " by other means.");
  }
  try {
    bound_files(child, max_bytes);
  } catch (...) {
    close(ends[0]);
    throw;
  }
  Ended ended;
  char buffer[512];
  for (;;) {
    const ssize_t count = read(ends[0], buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    if (ended.output.size() < 2000) ended.output.append(buffer, static_cast<size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  ended.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  while (!ended.output.empty() && (ended.output.back() == '\n' || ended.output.back() == '\r'))
    ended.output.pop_back();
  return ended;
}

constexpr std::string_view curl_options =
    "--disable --fail --location --max-redirs 5 --silent --show-error --connect-timeout 20 --speed-limit 1 "
    "--speed-time 60 --continue-at - --proto =http,https --proto-redir";

// Exit codes of curl, as its manual lists them.
constexpr int not_found_code = 22, no_range_code = 33, too_large_code = 63;
constexpr int lasting_codes[] = {1, 2, 3, 5, 6, 7, 23, 35, 47, 60};  // retrying at once does not help

int64_t size_of(const Path& part) { return io::exists(part) ? io::size(part) : 0; }

}  // namespace

bool transfer(const std::string& url, const Path& part, const TransferOptions& options) {
  const bool plain = url.starts_with("http://");
  if (!plain && !url.starts_with("https://")) fail("download: ", url, " is no http:// or https:// address.");
  bool continued = size_of(part) > 0;
  for (int attempt = 1;; ++attempt) {
    const int64_t before = size_of(part);
    std::vector<std::string> command{options.program};
    for (const std::string_view word : split_fields(curl_options, ' ')) command.emplace_back(word);
    command.insert(command.end(), {plain ? "=http,https" : "=https", "--max-filesize",
                                   std::to_string(options.cap), "--output", part.string(), "--url", url});
    // One more byte distinguishes a file that is too large from one that fits.
    const Ended ended = run(std::move(command), options.cap + 1);
    const int64_t after = size_of(part);
    const std::string reason = ended.output.empty() ? text("curl ended with ", ended.code) : ended.output;
    if (ended.signal == SIGINT || ended.signal == SIGTERM) {
      fail(Fault::file, "the download of ", url, " was stopped after ", after,
           " bytes. Run it again to continue.");
    }
    if (after > options.cap || ended.code == too_large_code) {
      io::remove_all(part);
      fail(Fault::data, url, " is larger than the ", options.cap,
           " bytes that are accepted. Nothing was kept. Is the address right? Another: --url.");
    }
    if (ended.signal != 0)
      fail(Fault::file, "curl was ended by signal ", ended.signal, " while it fetched ", url, ".");
    if (ended.code == 0) {
      if (!io::exists(part)) fail(Fault::data, url, " is empty.");
      return continued;
    }
    if (ended.code == not_found_code || ended.code == no_range_code) {
      io::remove_all(part);
      if (before > 0 &&
          attempt < options.attempts) {  // the part may belong to another file: retry once from the start
        continued = false;
        continue;
      }
      fail(Fault::file, url, " cannot be fetched: ", reason, ". Is the address right? Another: --url.");
    }
    const bool lasting =
        std::find(std::begin(lasting_codes), std::end(lasting_codes), ended.code) != std::end(lasting_codes);
    if (lasting || attempt >= options.attempts) {
      fail(Fault::file, url, " cannot be fetched: ", reason, ". ",
           after > 0 ? text(after, " bytes are kept; run it again to continue.")
                     : std::string("Is there a network? Another address: --url."));
    }
    continued = continued || after > 0;
  }
}

}  // namespace heed
