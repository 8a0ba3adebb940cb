// Readers and writers of labelled documents.
#include "heed/data/formats/labelled_documents.h"

#include <algorithm>

#include "heed/core/io/files.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/data/formats/expected_files.h"
#include "heed/data/text/text.h"

namespace heed {
namespace {

/// The format of a file's lines.
struct LineFormat {
  size_t num_fields;     // number of fields before the last text of the line
  const char* content;   // names of the fields, for errors
  const char* labels;    // the legal labels, for errors
  bool decimal = false;  // whether labels may be 0.0 and 1.0
};

/// Splits each line at the first `num_fields` tabs and calls add(fields, rest of the line). Returns the
/// labels, which are the first fields. Fault::data that names the line; empty lines are skipped.
template <class Add>
std::vector<uint8_t> parse_lines(std::string_view content, std::string_view name, const LineFormat& format,
                                 Add add) {
  std::vector<uint8_t> labels;
  const std::vector<std::string_view> lines = split_lines(content);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    std::string_view rest = lines[i];
    std::vector<std::string_view> fields(format.num_fields);
    for (std::string_view& field : fields) {
      const size_t tab = rest.find('\t');
      if (tab == std::string_view::npos) {
        fail(Fault::data, name, ":", i + 1, ": '", shown(lines[i]), "' has fewer than ", format.num_fields,
             " tabs. A line is ", format.content, ", between tabs.");
      }
      field = rest.substr(0, tab);
      rest.remove_prefix(tab + 1);
    }
    const bool is_one = fields[0] == "1" || (format.decimal && fields[0] == "1.0");
    if (!is_one && fields[0] != "0" && !(format.decimal && fields[0] == "0.0")) {
      fail(Fault::data, name, ":", i + 1, ": the label is '", shown(fields[0]), "'; it is ", format.labels,
           ".");
    }
    labels.push_back(is_one ? 1 : 0);
    add(fields, rest);
  }
  return labels;
}

}  // namespace

Sequences parse_reviews(std::string_view content, std::string_view name) {
  Sequences out;
  out.labels = parse_lines(content, name,
                           {.num_fields = 3,
                            .content = "label, rating, number and text",
                            .labels = "0 (negative) or 1 (positive)"},
                           [&](const auto&, std::string_view review) { out.add(review); });
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
    const Path class_folder = folder / part / (label == 1 ? "pos" : "neg");
    std::vector<Path> files;
    for (const Path& file : io::list(class_folder)) {
      if (file.extension() == ".txt") files.push_back(file);
    }
    if (files.empty())
      fail(Fault::data, class_folder, ": no .txt file is there. Give the folder of IMDb, unpacked.");
    texts[label].resize(files.size());
    parallel_rows(static_cast<int64_t>(files.size()), 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        texts[label][static_cast<size_t>(i)] = io::read(class_folder / files[static_cast<size_t>(i)]);
    });
  }
  Sequences out;  // takes the classes in turn, so that the first examples are of both
  for (size_t i = 0; i < std::max(texts[0].size(), texts[1].size()); ++i) {
    for (const uint8_t label : {uint8_t{0}, uint8_t{1}}) {
      if (i >= texts[label].size()) continue;
      out.add(texts[label][i]);
      out.labels.push_back(label);
    }
  }
  return out;
}

Sequences parse_document_pairs(std::string_view content, std::string_view name, int64_t max_bytes) {
  Sequences out;
  out.parts = 2;
  out.labels = parse_lines(
      content, name,
      {.num_fields = 4, .content = "label, two numbers and two texts", .labels = "0 or 1", .decimal = true},
      [&](const auto& fields, std::string_view second) {
        out.add(fields[3].substr(0, static_cast<size_t>(max_bytes)));
        out.add(second.substr(0, static_cast<size_t>(max_bytes)));
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
