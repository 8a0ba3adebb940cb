// Readers of labelled texts.
#include "heed/data/text/labelled_text.h"

#include <algorithm>
#include <array>

#include "heed/core/io/files.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed {
namespace {

/// Calls f(line, number) for each line. Keeps every byte but the line end; skips a byte order mark.
template <class F>
void each_line(std::string_view all, F f) {
  if (all.starts_with("\xEF\xBB\xBF")) all.remove_prefix(3);
  int64_t number = 0;
  for (size_t at = 0; at < all.size(); ++number) {
    const size_t end = std::min(all.find('\n', at), all.size());
    std::string_view line = all.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    at = end + 1;
    if (!line.empty()) f(line, number + 1);
  }
}

/// Splits `count` fields off the front of a line; false when there are fewer tabs.
bool cut_fields(std::string_view& line, std::string_view* fields, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const size_t tab = line.find('\t');
    if (tab == std::string_view::npos) return false;
    fields[i] = line.substr(0, tab);
    line.remove_prefix(tab + 1);
  }
  return true;
}

/// 0 or 1; 2 when the field is neither.
uint8_t label_of(std::string_view field) {
  if (field == "0" || field == "0.0") return 0;
  if (field == "1" || field == "1.0") return 1;
  return 2;
}

Path plain_or_gzip(const Path& plain) {
  const Path packed = plain.string() + ".gz";
  return !io::exists(plain) && io::exists(packed) ? packed : plain;
}

}  // namespace

Sequences parse_reviews(std::string_view all, std::string_view name) {
  Sequences out;
  each_line(all, [&](std::string_view line, int64_t number) {
    std::string_view fields[3];
    const std::string_view whole = line;
    if (!cut_fields(line, fields, 3)) {
      fail(Fault::data, name, ":", number, ": '", shown(whole),
           "' has fewer than three tabs. A line is label, rating, number and text, between tabs.");
    }
    const uint8_t label = fields[0].size() == 1 ? label_of(fields[0]) : uint8_t{2};
    if (label > 1) {
      fail(Fault::data, name, ":", number, ": the label is '", shown(fields[0]),
           "'; it is 0 (negative) or 1 (positive).");
    }
    out.add(line);
    out.labels.push_back(label);
  });
  if (out.count() == 0) fail(Fault::data, name, ":1: no review.");
  return out;
}

Sequences read_imdb(const Path& folder, bool test) {
  const std::string part = test ? "test" : "train";
  if (!io::is_directory(folder / part)) {
    const Path path = plain_or_gzip(folder / (part + ".tsv"));
    if (!io::exists(path)) {
      fail(Fault::file, folder, ": there is neither the folder ", part, " nor ", part,
           ".tsv (or .tsv.gz). Give the folder of IMDb that holds train and test: heed data get imdb, or "
           "heed data generate text.");
    }
    return parse_reviews(io::read_regular_text(path), path.string());
  }
  std::array<std::vector<std::string>, 2> texts;  // negative, positive
  for (const uint8_t label : {uint8_t{0}, uint8_t{1}}) {
    const Path place = folder / part / (label == 1 ? "pos" : "neg");
    std::vector<Path> files;
    for (const Path& file : io::list(place)) {
      if (file.extension() == ".txt") files.push_back(file);
    }
    if (files.empty())
      fail(Fault::data, place, ": no .txt file is there. Give the folder of IMDb, unpacked.");
    texts[label].resize(files.size());
    parallel_rows(static_cast<int64_t>(files.size()), 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        texts[label][static_cast<size_t>(i)] = io::read(place / files[static_cast<size_t>(i)]);
    });
  }
  Sequences out;  // in turn, so that the first examples are of both classes
  for (size_t i = 0; i < std::max(texts[0].size(), texts[1].size()); ++i) {
    for (const uint8_t label : {uint8_t{0}, uint8_t{1}}) {
      if (i >= texts[label].size()) continue;
      out.add(texts[label][i]);
      out.labels.push_back(label);
    }
  }
  return out;
}

Sequences parse_document_pairs(std::string_view all, std::string_view name, int64_t longest) {
  Sequences out;
  out.parts = 2;
  each_line(all, [&](std::string_view line, int64_t number) {
    std::string_view fields[4];
    const std::string_view whole = line;
    if (!cut_fields(line, fields, 4)) {
      fail(Fault::data, name, ":", number, ": '", shown(whole),
           "' has fewer than four tabs. A line is label, two numbers and two texts, between tabs.");
    }
    const uint8_t label = label_of(fields[0]);
    if (label > 1)
      fail(Fault::data, name, ":", number, ": the label is '", shown(fields[0]), "'; it is 0 or 1.");
    out.add(fields[3].substr(0, static_cast<size_t>(longest)));
    out.add(line.substr(0, static_cast<size_t>(longest)));
    out.labels.push_back(label);
  });
  if (out.count() == 0) fail(Fault::data, name, ":1: no pair of documents.");
  return out;
}

Sequences read_document_pairs(const Path& folder, std::string_view part) {
  const Path released = plain_or_gzip(folder / text("new_aan_pairs.", part, ".tsv"));
  const Path path = io::exists(released) ? released : plain_or_gzip(folder / text(part, ".tsv"));
  if (!io::exists(path)) {
    fail(Fault::file, folder, ": neither new_aan_pairs.", part, ".tsv nor ", part,
         ".tsv is there. Give the folder of the pairs out of the Long Range Arena's release, or make some: "
         "heed data generate retrieval --out FOLDER.");
  }
  return parse_document_pairs(io::read_regular_text(path), path.string());
}

void write_reviews(const Path& folder, const Sequences& train, const Sequences& test) {
  io::make_directories(folder);
  for (const auto& [name, set] : {std::pair{"train.tsv", &train}, {"test.tsv", &test}}) {
    std::string out;
    for (int64_t i = 0; i < set->count(); ++i) {
      const int label = set->labels[static_cast<size_t>(i)];
      out += text(label, "\t", label == 1 ? 10 : 1, "\t", i, "\t", set->at(i), "\n");
    }
    io::write(folder / name, out);
  }
}

void write_document_pairs(const Path& folder, const std::array<Sequences, 3>& splits) {
  io::make_directories(folder);
  constexpr const char* names[] = {"train", "eval", "test"};
  for (size_t split = 0; split < splits.size(); ++split) {
    const Sequences& set = splits[split];
    std::string out;
    for (int64_t i = 0; i < set.count(); ++i) {
      out += text(static_cast<int>(set.labels[static_cast<size_t>(i)]), "\t", 2 * i, "\t", 2 * i + 1, "\t",
                  set.at(i, 0), "\t", set.at(i, 1), "\n");
    }
    io::write(folder / text("new_aan_pairs.", names[split], ".tsv"), out);
  }
}

}  // namespace heed
