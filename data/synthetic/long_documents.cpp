// Generates long documents: sentences that decide the label at random places among lines of verse.
#include "heed/data/synthetic/long_documents.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "heed/core/parallel/thread_pool.h"
#include "heed/data/synthetic/counter_rng.h"
#include "heed/data/synthetic/language_model_text.h"
#include "heed/data/text/text.h"

namespace heed {
namespace {

constexpr std::array first_names{"Anna", "Boris", "Clara", "Dario", "Elena", "Felix", "Greta", "Hugo"};
constexpr std::array houses{"Ash",  "Birch", "Cedar", "Date",  "Elm",   "Fir",    "Gorse", "Hazel",
                            "Iris", "Jade",  "Kelp",  "Larch", "Maple", "Nettle", "Oak",   "Pine"};
constexpr std::array things{"the bread", "the wine", "the roof", "the song", "the road", "the bell"};

void check(int64_t count, const DocumentLengths& lengths) {
  if (count < 1 || count > 10'000'000)
    fail("documents: a count of ", count, " is outside 1 .. 10000000. Choose one inside.");
  if (lengths.min_bytes < 600 || lengths.max_bytes < lengths.min_bytes || lengths.max_bytes > 1'000'000) {
    fail("documents: lengths of ", lengths.min_bytes, " to ", lengths.max_bytes,
         " bytes. Give at least 600 and at most 1000000, the smaller first.");
  }
}

/// Lines of verse without meaning for the label, which all documents of a seed are filled up with.
struct Filler {
  explicit Filler(uint64_t seed) : text(verse(200000, seed)) {
    for (const std::string_view line : split_lines(text)) {
      if (line.size() > 10) lines.push_back(line);
    }
  }
  std::string text;
  std::vector<std::string_view> lines;
};

/// A document of about `length` bytes: `first`, then `sentences` at random positions among lines of verse.
std::string document(CounterRng& rng, const Filler& filler, int64_t length, const std::string& first,
                     std::vector<std::string> sentences) {
  int64_t missing = length - static_cast<int64_t>(first.size());  // bytes
  for (const std::string& sentence : sentences) missing -= static_cast<int64_t>(sentence.size()) + 1;
  std::vector<std::string> lines;
  while (missing > 0) {
    lines.emplace_back(rng.pick(filler.lines));
    missing -= static_cast<int64_t>(lines.back().size()) + 1;
  }
  for (std::string& sentence : sentences)
    lines.insert(lines.begin() + rng.below(static_cast<int64_t>(lines.size()) + 1), std::move(sentence));
  std::string out = first;
  // Blanks join the lines, not line ends: in a file of documents each one is a field.
  for (const std::string& line : lines) out += line + " ";
  out.pop_back();
  return out;
}

/// Eight people give their verdicts on one thing; the first line names the one that decides the label.
std::string verdict_document(CounterRng& rng, const Filler& filler, const DocumentLengths& lengths,
                             bool good) {
  std::array<size_t, first_names.size()> order{};
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = order.size() - 1; i > 0; --i)
    std::swap(order[i], order[static_cast<size_t>(rng.below(static_cast<int64_t>(i) + 1))]);
  // order[0] is the named person; of the other seven, three share the verdict and four do not.
  const std::string thing = rng.pick(things);
  std::vector<std::string> sentences;
  for (size_t i = 0; i < order.size(); ++i)
    sentences.push_back(text(first_names[order[i]], " calls ", thing, (i < 4) == good ? " good." : " poor."));
  const std::string first = text("Only the word of ", first_names[order[0]], " counts. ");
  return document(rng, filler, rng.between(lengths.min_bytes, lengths.max_bytes), first,
                  std::move(sentences));
}

/// A document that names this house once.
std::string house_document(CounterRng& rng, const Filler& filler, const DocumentLengths& lengths,
                           const char* house) {
  return document(rng, filler, rng.between(lengths.min_bytes, lengths.max_bytes), "",
                  {text("This is a tale of the house of ", house, ".")});
}

/// Labels 0 and 1 in equal numbers, shuffled.
std::vector<uint8_t> even_labels(int64_t count, uint64_t seed) {
  std::vector<uint8_t> labels(static_cast<size_t>(count));
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<uint8_t>(i % 2);
  shuffle(std::span(labels), seed, 0);
  return labels;
}

/// Generates `count` examples in parallel: make(rng, is_label_1, texts) writes the `parts` texts of one
/// example, each from a random stream of its own.
template <class Make>
Sequences generate(int64_t count, int64_t parts, uint64_t seed, const ProgressCallback& on_progress,
                   Make make) {
  Sequences out;
  out.parts = parts;
  out.labels = even_labels(count, seed);
  std::vector<std::string> texts(static_cast<size_t>(count * parts));
  parallel_rows_with_progress(count, 16, on_progress, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      CounterRng rng(seed, static_cast<uint64_t>(i) + 1);
      make(rng, out.labels[static_cast<size_t>(i)] == 1, &texts[static_cast<size_t>(i * parts)]);
    }
  });
  for (const std::string& part : texts) out.add(part);
  return out;
}

}  // namespace

Sequences verdict_documents(int64_t count, uint64_t seed, const DocumentLengths& lengths,
                            const ProgressCallback& on_progress) {
  check(count, lengths);
  const Filler filler(seed);
  return generate(count, 1, seed, on_progress, [&](CounterRng& rng, bool good, std::string* out) {
    *out = verdict_document(rng, filler, lengths, good);
  });
}

Sequences document_pairs(int64_t count, uint64_t seed, const DocumentLengths& lengths,
                         const ProgressCallback& on_progress) {
  check(count, lengths);
  const Filler filler(seed);
  return generate(count, 2, seed, on_progress, [&](CounterRng& rng, bool same, std::string* out) {
    const auto num_houses = static_cast<int64_t>(houses.size());
    const int64_t first = rng.below(num_houses);
    const int64_t second = same ? first : (first + rng.between(1, num_houses - 1)) % num_houses;
    out[0] = house_document(rng, filler, lengths, houses[static_cast<size_t>(first)]);
    out[1] = house_document(rng, filler, lengths, houses[static_cast<size_t>(second)]);
  });
}

}  // namespace heed
