// Unpacks text corpora: IMDb, OPUS Books, Tiny Shakespeare, WikiText-2.
#include <algorithm>
#include <charconv>
#include <tuple>

#include "heed/core/io/files.h"
#include "heed/core/io/gzip.h"
#include "heed/data/download/corpus_catalog.h"
#include "heed/data/formats/tar.h"
#include "heed/data/formats/zip.h"
#include "heed/data/text/parallel_text.h"
#include "heed/data/text/text.h"
#include "heed/data/tokenizers/vocabulary.h"

namespace heed {
namespace {

constexpr int64_t max_review_bytes = int64_t{1} << 30;  // bytes of IMDb's archive, decompressed
constexpr int64_t reviews_per_half = 25000;
// opus_books in the hkproj recipe: all pairs, and the two word vocabularies of them.
constexpr int64_t opus_books_pairs = 32332, opus_books_english = 15698, opus_books_italian = 22463;
constexpr int64_t shakespeare_bytes = 1115394;

/// A labelled review in IMDb's archive.
struct Review {
  bool test = false, positive = false;
  int64_t number = 0, rating = 0;
  std::string_view text;
};

/// The number that is the whole text; -1 when it is none.
int64_t whole_number(std::string_view digits) {
  int64_t value = -1;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return fault == std::errc() && end == digits.data() + digits.size() && digits[0] != '-' ? value : -1;
}

/// Parses a path aclImdb/{train,test}/{neg,pos}/NUMBER_RATING.txt; false for other paths.
bool parse_place(std::string_view path, Review& review, std::string_view archive) {
  const std::vector<std::string_view> steps = split_fields(path, '/');
  if (steps.size() != 4 || (steps[1] != "train" && steps[1] != "test") ||
      (steps[2] != "neg" && steps[2] != "pos")) {
    return false;
  }
  std::string_view name = steps[3];
  const size_t line = name.find('_');
  if (line != std::string_view::npos && name.ends_with(".txt")) {
    name.remove_suffix(4);
    review.number = whole_number(name.substr(0, line));
    review.rating = whole_number(name.substr(std::min(line + 1, name.size())));
  }
  review.test = steps[1] == "test";
  review.positive = steps[2] == "pos";
  const bool fits =
      review.positive ? review.rating >= 7 && review.rating <= 10 : review.rating >= 1 && review.rating <= 4;
  if (review.number < 0 || !fits) {
    fail(Fault::data, archive, ": '", shown(path),
         "' is no NUMBER_RATING.txt with a rating that fits its folder. Is this IMDb as published?");
  }
  return true;
}

/// The labelled reviews, ordered by half, number and label. Fault::data when one cannot be a row, or a half
/// has none.
std::vector<Review> labelled_reviews(const std::vector<TarEntry>& entries, std::string_view archive) {
  std::vector<Review> reviews;
  int64_t counts[2][2] = {};
  for (const TarEntry& entry : entries) {
    Review review{.text = entry.bytes};
    if (!parse_place(entry.name, review, archive)) continue;
    if (review.text.find('\n') != std::string_view::npos) {
      fail(Fault::data, archive, ": the review '", shown(entry.name),
           "' has a line end within; published ones are one line each. Is this IMDb as published?");
    }
    ++counts[review.test][review.positive];
    reviews.push_back(review);
  }
  for (const bool test : {false, true}) {
    for (const bool positive : {false, true}) {
      if (counts[test][positive] == 0) {
        fail(Fault::data, archive, " has no review in ", test ? "test/" : "train/", positive ? "pos" : "neg",
             ". Is this IMDb as published?");
      }
    }
  }
  std::sort(reviews.begin(), reviews.end(), [](const Review& a, const Review& b) {
    return std::tuple(a.test, a.number, a.positive) < std::tuple(b.test, b.number, b.positive);
  });
  return reviews;
}

/// The entry's bytes. Fault::data when it is missing.
const std::string& entry_of(const std::vector<ZipEntry>& entries, const std::string& name,
                            std::string_view archive) {
  for (const ZipEntry& entry : entries) {
    if (entry.name == name) return entry.bytes;
  }
  fail(Fault::data, archive, " has no ", name, ". Is this the archive of the publisher?");
}

}  // namespace

Downloaded unpacked::imdb(const RemoteCorpus& corpus, const DownloadOptions& options) {
  const RemoteFile& file = corpus.files[0];
  std::string archive;
  std::vector<Review> reviews;
  fetch(file, options, [&](std::string_view bytes) {
    archive = inflate_text(bytes, max_review_bytes, file.name);
    reviews = labelled_reviews(untar(archive, file.name), file.name);
  });
  Downloaded out{.data = options.folder};
  for (const bool test : {false, true}) {
    std::string rows;
    int64_t count = 0;
    for (const Review& review : reviews) {
      if (review.test != test) continue;
      rows += text(review.positive ? 1 : 0, "\t", review.rating, "\t", review.number, "\t");
      rows += review.text;
      rows += '\n';
      ++count;
    }
    io::write(options.folder / (test ? "test.tsv" : "train.tsv"), rows);
    out.as_published &=
        as_published(options, test ? "test reviews" : "training reviews", count, reviews_per_half);
  }
  return out;
}

Downloaded unpacked::opus_books(const RemoteCorpus& corpus, const DownloadOptions& options) {
  const RemoteFile& file = corpus.files[0];
  std::vector<ZipEntry> entries;
  fetch(file, options, [&](std::string_view archive) {
    entries = unzip(archive, file.name);
    for (const char* side : {"Books.en-it.en", "Books.en-it.it"}) entry_of(entries, side, file.name);
  });
  for (const ZipEntry& entry : entries) {
    const bool text_side = entry.name == "Books.en-it.en" || entry.name == "Books.en-it.it";
    if (text_side || entry.name == "README" || entry.name == "LICENSE")
      io::write(options.folder / entry.name, entry.bytes);
  }
  Downloaded out{.data = options.folder / "Books.en-it"};
  const PairFile pairs = read_pairs(out.data);
  const int64_t english = Vocabulary::train(sources(pairs.pairs)).size();
  const int64_t italian = Vocabulary::train(targets(pairs.pairs)).size();
  out.as_published &= as_published(options, "sentence pairs", pairs.lines, opus_books_pairs);
  out.as_published &= as_published(options, "English words seen twice or more", english, opus_books_english);
  out.as_published &= as_published(options, "Italian words seen twice or more", italian, opus_books_italian);
  return out;
}

Downloaded unpacked::tinyshakespeare(const RemoteCorpus& corpus, const DownloadOptions& options) {
  const std::string bytes = fetch(corpus.files[0], options);
  const bool fits = as_published(options, "bytes", static_cast<int64_t>(bytes.size()), shakespeare_bytes);
  return {.data = options.folder / corpus.files[0].name, .as_published = fits};
}

Downloaded unpacked::wikitext2(const RemoteCorpus& corpus, const DownloadOptions& options) {
  struct Part {
    const char* name;
    int64_t tokens;  // words, and one token per line end
  };
  constexpr Part parts[] = {
      {"wiki.train.tokens", 2088628}, {"wiki.valid.tokens", 217646}, {"wiki.test.tokens", 245569}};
  const RemoteFile& file = corpus.files[0];
  std::vector<ZipEntry> entries;
  fetch(file, options, [&](std::string_view archive) {
    entries = unzip(archive, file.name);
    for (const Part& part : parts) entry_of(entries, text("wikitext-2/", part.name), file.name);
  });
  Downloaded out{.data = options.folder / parts[0].name};
  for (const Part& part : parts) {
    const std::string& bytes = entry_of(entries, text("wikitext-2/", part.name), file.name);
    io::write(options.folder / part.name, bytes);
    const int64_t tokens = blank_separated_words(bytes) + std::count(bytes.begin(), bytes.end(), '\n');
    out.as_published &= as_published(options, text("tokens of ", part.name), tokens, part.tokens);
  }
  return out;
}

}  // namespace heed
