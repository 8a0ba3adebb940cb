// Downloads and verifies files.
#include "heed/data/download/download.h"

#include "heed/core/io/files.h"
#include "heed/core/io/hash.h"
#include "heed/core/io/no_follow_files.h"

namespace heed {
namespace {

void say(const DownloadOptions& options, const std::string& line) {
  if (options.say) options.say(line);
}

/// The part of an address after its last slash.
std::string last_step(const std::string& url) { return url.substr(url.rfind('/') + 1); }

std::string address(const RemoteFile& file, const DownloadOptions& options) {
  if (options.url.empty()) return file.url;
  return options.url + (options.url.ends_with('/') ? "" : "/") + last_step(file.url);
}

/// The hash in a line of sha256sum; empty when there is no record.
std::string recorded(const Path& record, const std::string& name) {
  if (!io::exists(record)) return {};
  const std::string line = io::read(record, 4096);
  if (line.size() == 64 + 3 + name.size() && line.substr(64) == "  " + name + "\n") return line.substr(0, 64);
  fail(Fault::data, record, ": no record of ", name,
       ". It must be a line of sha256sum; remove it to start anew.");
}

}  // namespace

std::string fetch(const RemoteFile& file, const DownloadOptions& options,
                  const std::function<void(std::string_view)>& inspect) {
  io::make_directories(options.folder);
  const io::DirectoryLock turn(options.folder, [&] {
    say(options, text("another process is filling ", options.folder, "; waiting for it"));
  });
  const Path place = options.folder / file.name;
  const Path record = options.folder / (file.name + ".sha256");
  const Path part = options.folder / (file.name + ".part");
  const std::string expected = file.sha256.empty() ? recorded(record, file.name) : file.sha256;

  if (io::exists(place)) {
    std::string bytes = io::read(place, options.transfer.cap);
    const std::string found = sha256_hex(bytes);
    if (!expected.empty() && found != expected) {
      fail(Fault::data, place, " is there, but its SHA-256 is ", found, "; expected: ", expected,
           ". Move it away and run this again.");
    }
    if (inspect) inspect(bytes);
    say(options, text(place, " is there already, sha256 ", found));
    if (expected.empty()) io::write(record, found + "  " + file.name + "\n");
    return bytes;
  }

  const std::string url = address(file, options);
  io::check_regular(part);  // curl would follow a link
  for (bool again = false;; again = true) {
    const int64_t kept = io::exists(part) ? io::size(part) : 0;
    say(options, kept > 0 ? text("fetching ", url, " from byte ", kept, " on") : text("fetching ", url));
    const bool continued = transfer(url, part, options.transfer);
    std::string bytes = io::read(part, options.transfer.cap);
    try {
      const std::string found = sha256_hex(bytes);
      if (!expected.empty() && found != expected) {
        fail(Fault::data, url, ": the SHA-256 of its ", bytes.size(), " bytes is ", found,
             "; expected: ", expected, ". Nothing was kept. Is this the file of the publisher?");
      }
      if (inspect) inspect(bytes);
      io::write(place, bytes);
      io::remove_all(part);
      io::write(record, found + "  " + file.name + "\n");
      say(options, text(place, ": ", bytes.size(), " bytes, sha256 ", found,
                        expected.empty() ? " (recorded; later downloads are compared)" : ", as expected"));
      return bytes;
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;
      io::remove_all(part);
      // The part may have begun with bytes of another file: download the whole file once.
      if (!continued || again) throw;
      say(options, "the continued file is not right; fetching it as a whole");
    }
  }
}

Downloaded download(const RemoteCorpus& corpus, const DownloadOptions& options) {
  if (options.folder.empty()) fail("data get: no folder to put ", corpus.name, " into was given.");
  say(options, corpus.title);
  say(options, corpus.licence);
  return corpus.unpack(corpus, options);
}

Downloaded download(std::string_view name, const DownloadOptions& options) {
  std::string known;
  for (const RemoteCorpus& corpus : remote_corpora()) {
    if (corpus.name == name) return download(corpus, options);
    known += (known.empty() ? "" : ", ") + corpus.name;
  }
  fail("data get: no corpus is called '", name, "'. Known: ", known, ".");
}

}  // namespace heed
