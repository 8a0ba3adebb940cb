// The known corpora and how each is unpacked and checked.
#include "data/download.h"

#include <algorithm>

#include "core/hash.h"
#include "core/io.h"
#include "data/idx.h"
#include "data/parallel_text.h"
#include "data/vocabulary.h"
#include "data/zip.h"

namespace heed {
namespace {

// opus_books as the hkproj recipe sees it: all pairs, and the two word vocabularies over them.
constexpr int64_t opus_books_pairs = 32332, opus_books_english = 15698, opus_books_italian = 22463;
constexpr int64_t shakespeare_bytes = 1115394;

const RemoteCorpus corpora[] = {
    {.name = "opus_books",
     .title = "OPUS Books, English and Italian: 32,332 aligned sentence pairs of novels",
     .licence =
         "Terms of OPUS Books (https://opus.nlpl.eu/Books): free for personal, educational and research use. "
         "Commercial use and passing on in bulk need the permission of its compiler, A. Farkas. Cite "
         "J. Tiedemann, 2012, Parallel Data, Tools and Interfaces in OPUS (LREC).",
     .files = {{.url = "https://object.pouta.csc.fi/OPUS-Books/v1/moses/en-it.txt.zip",
                .name = "en-it.txt.zip",
                .sha256 = ""}}},
    {.name = "tinyshakespeare",
     .title = "Tiny Shakespeare: 40,000 lines of plays",
     .licence = "The text is in the public domain; the repository it comes from (karpathy/char-rnn) is under "
                "the MIT "
                "licence.",
     .files = {{.url = "https://raw.githubusercontent.com/karpathy/char-rnn/"
                       "6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e/data/tinyshakespeare/input.txt",
                .name = "tinyshakespeare.txt",
                .sha256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"}}},
    {.name = "mnist",
     .title = "MNIST: 70,000 handwritten digits of 28 x 28 pixels",
     .licence =
         "Y. LeCun, C. Cortes and C. Burges offer MNIST for research; copies name the Creative Commons "
         "Attribution-ShareAlike 3.0 licence. Cite LeCun et al., 1998, Gradient-based learning applied to "
         "document recognition.",
     .files = {{.url = "https://storage.googleapis.com/cvdf-datasets/mnist/train-images-idx3-ubyte.gz",
                .name = "train-images-idx3-ubyte.gz",
                .sha256 = "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
               {.url = "https://storage.googleapis.com/cvdf-datasets/mnist/train-labels-idx1-ubyte.gz",
                .name = "train-labels-idx1-ubyte.gz",
                .sha256 = "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
               {.url = "https://storage.googleapis.com/cvdf-datasets/mnist/t10k-images-idx3-ubyte.gz",
                .name = "t10k-images-idx3-ubyte.gz",
                .sha256 = "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
               {.url = "https://storage.googleapis.com/cvdf-datasets/mnist/t10k-labels-idx1-ubyte.gz",
                .name = "t10k-labels-idx1-ubyte.gz",
                .sha256 = "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}}},
};

void say(const DownloadOptions& options, const std::string& line) {
  if (options.say) options.say(line);
}

/// The last step of an address.
std::string last_step(const std::string& url) { return url.substr(url.rfind('/') + 1); }

std::string address(const RemoteFile& file, const DownloadOptions& options) {
  if (options.url.empty()) return file.url;
  return options.url + (options.url.ends_with('/') ? "" : "/") + last_step(file.url);
}

/// The hash in a line of sha256sum, empty when the record is not there.
std::string recorded(const Path& record, const std::string& name) {
  if (!io::exists(record)) return {};
  const std::string line = io::read(record, 4096);
  if (line.size() == 64 + 3 + name.size() && line.substr(64) == "  " + name + "\n") return line.substr(0, 64);
  fail(Fault::data, record, ": no record of ", name,
       ". It must be a line of sha256sum; remove it to start anew.");
}

/// Says how a measured number compares with the known one.
bool compare(const DownloadOptions& options, std::string_view what, int64_t found, int64_t known) {
  say(options, text(what, ": ", found, found == known ? ", as published" : text("; published: ", known)));
  return found == known;
}

Downloaded finish_opus_books(const std::string& archive, const DownloadOptions& options) {
  for (const ZipEntry& entry : unzip(archive, "en-it.txt.zip")) {
    const bool text_side = entry.name == "Books.en-it.en" || entry.name == "Books.en-it.it";
    if (text_side || entry.name == "README" || entry.name == "LICENSE") {
      io::write(options.folder / entry.name, entry.bytes);
    }
  }
  Downloaded out{.data = options.folder / "Books.en-it"};
  const PairFile file = read_pairs(out.data);
  const int64_t english = Vocabulary::train(sources(file.pairs)).size();
  const int64_t italian = Vocabulary::train(targets(file.pairs)).size();
  const bool pairs_fit = compare(options, "sentence pairs", file.lines, opus_books_pairs);
  const bool english_fits = compare(options, "English words seen twice or more", english, opus_books_english);
  const bool italian_fits = compare(options, "Italian words seen twice or more", italian, opus_books_italian);
  out.as_published = pairs_fit && english_fits && italian_fits;
  return out;
}

void inspect_opus_books(std::string_view archive) {
  const auto entries = unzip(archive, "en-it.txt.zip");
  for (const char* side : {"Books.en-it.en", "Books.en-it.it"}) {
    const bool there = std::any_of(entries.begin(), entries.end(),
                                   [&](const ZipEntry& entry) { return entry.name == side; });
    if (!there)
      fail(Fault::data, "en-it.txt.zip has no ", side, ". Is this the archive of OPUS Books, Moses format?");
  }
}

}  // namespace

std::span<const RemoteCorpus> remote_corpora() { return corpora; }

std::string fetch(const RemoteFile& file, const DownloadOptions& options,
                  const std::function<void(std::string_view)>& inspect) {
  io::make_directories(options.folder);
  const io::Turn turn(options.folder, [&] {
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
      // The part may have begun with bytes of another file: the whole file is fetched once more.
      if (!continued || again) throw;
      say(options, "the continued file is not right; fetching it as a whole");
    }
  }
}

Downloaded download(std::string_view name, const DownloadOptions& options) {
  const auto corpus = std::find_if(std::begin(corpora), std::end(corpora),
                                   [&](const RemoteCorpus& c) { return c.name == name; });
  if (corpus == std::end(corpora)) {
    fail("data get: no corpus is called '", name, "'. Known: opus_books, tinyshakespeare, mnist.");
  }
  if (options.folder.empty()) fail("data get: no folder to put ", name, " into was given.");
  say(options, corpus->title);
  say(options, corpus->licence);
  if (name == "opus_books") {
    return finish_opus_books(fetch(corpus->files[0], options, inspect_opus_books), options);
  }
  if (name == "tinyshakespeare") {
    const std::string bytes = fetch(corpus->files[0], options);
    const bool fits = compare(options, "bytes", static_cast<int64_t>(bytes.size()), shakespeare_bytes);
    return {.data = options.folder / corpus->files[0].name, .as_published = fits};
  }
  for (const RemoteFile& file : corpus->files) fetch(file, options);
  const bool train =
      compare(options, "training images", read_mnist(options.folder, false).images.count, 60000);
  const bool test = compare(options, "test images", read_mnist(options.folder, true).images.count, 10000);
  return {.data = options.folder, .as_published = train && test};
}

}  // namespace heed
