// Runs curl without a shell.
#include "heed/data/download/curl.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "heed/core/io/files.h"
#include "heed/core/io/subprocess.h"
#include "heed/data/text/text.h"

namespace heed {
namespace {

/// Limits the files that this process writes: the kernel ends it with SIGXFSZ beyond, here without a core
/// file. Returns 0 or an errno.
int limit_files(int64_t max_bytes) {
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  rlimit size{};
  if (setrlimit(RLIMIT_CORE, &none) != 0 || getrlimit(RLIMIT_FSIZE, &size) != 0) return errno;
  size.rlim_cur = size.rlim_max = std::min(size.rlim_cur, static_cast<rlim_t>(max_bytes));
  return setrlimit(RLIMIT_FSIZE, &size) != 0 ? errno : 0;
}

/// Runs a program whose files cannot grow beyond `max_bytes`.
io::SubprocessEnd run(const std::vector<std::string>& words, int64_t max_bytes) {
  io::SubprocessEnd end = io::run_subprocess(
      {.program = words[0], .arguments = words, .prepare = [max_bytes] { return limit_files(max_bytes); }});
  if (end.start_error == 0) return end;
  if (end.is_refused)
    fail(Fault::file, "the size of a download cannot be limited: setrlimit: ", std::strerror(end.start_error),
         ". Fetch ", words.back(), " by other means.");
  fail(Fault::file, "the program '", words[0], "' cannot be started: ", std::strerror(end.start_error),
       ". Install it (Debian: apt-get install curl), or fetch ", words.back(), " by other means.");
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
    const io::SubprocessEnd ended = run(std::move(command), options.cap + 1);
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
