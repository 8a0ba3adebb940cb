// heed data: fetching corpora, checking files before a run, and writing embedded data as files.
#include <algorithm>
#include <array>

#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/data/download/download.h"
#include "heed/data/formats/cifar.h"
#include "heed/data/formats/labelled_documents.h"
#include "heed/data/synthetic/digits.h"
#include "heed/data/synthetic/listops.h"
#include "heed/data/synthetic/long_documents.h"
#include "heed/data/synthetic/pathfinder.h"
#include "heed/data/text/parallel_corpus.h"
#include "heed/nn/set_option.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/progress/progress.h"
#include "heed/train/tasks/find_data.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

/// Downloads the corpus that the second argument names, and prints the path of its data.
int get_corpus(const ParsedArguments& arguments) {
  std::vector<std::string> known;
  std::string names;
  for (const RemoteCorpus& corpus : remote_corpora()) {
    known.push_back(corpus.name);
    names += (names.empty() ? "" : ", ") + corpus.name;
  }
  if (arguments.positional.size() != 2)
    fail("data get: name one corpus: ", names, ". `heed list data` describes them.");
  known_word("data get: corpus", arguments.positional[1], known);
  const std::string url = arguments.get("url");
  if (arguments.has("url") && !url.starts_with("http://") && !url.starts_with("https://"))
    fail("--url ", url, " is no http:// or https:// address.");
  const Downloaded done =
      download(arguments.positional[1],
               {.folder = arguments.get("out", "data-" + arguments.positional[1]),
                .url = arguments.get("url"),
                .say = [](std::string_view line) { io::print_error(text("  ", line, "\n")); }});
  io::print_data(done.data.string() + "\n");
  return 0;
}

/// Reads a file of sentence pairs, and prints the report on it and the sizes of the default split.
int check_pairs(const ParsedArguments& arguments) {
  if (arguments.positional.size() != 2) fail("data check: name one file or folder of sentence pairs.");
  const Path path = find_data(arguments.positional[1]);
  PairFile file;
  try {
    file = read_pairs(path, {.source = arguments.get("from", "en"), .target = arguments.get("into", "it")});
  } catch (const Error& error) {
    if (error.fault() != Fault::data && error.fault() != Fault::file) throw;
    fail(error.fault(), error.what(), " data check reads sentence pairs only; for other data: heed train ",
         "PRESET --data ", path, " --dry-run.");
  }
  const CorpusOptions split;
  const ParallelCorpus corpus = make_corpus(std::move(file), {.validation = 0, .test = 0});
  const auto pairs = static_cast<int64_t>(corpus.train.size());
  const int64_t train_pairs = pairs - split.validation - split.test;
  const int64_t tenth = std::max<int64_t>(pairs / 10, 1);
  io::printf("%s\n", to_string(corpus.report).c_str());
  if (train_pairs > 0) {
    io::print(text(train_pairs, " train, ", split.validation, " validation, ", split.test,
                   " test pairs with the default split\n"));
  } else {
    io::print(text(pairs, " pairs; the default split holds out ", split.validation, " + ", split.test,
                   ": train with --data.validation ", tenth, " --data.test_size ", tenth, "\n"));
  }
  for (const SourceFile& one : corpus.report.files)
    io::printf("sha256 %s  %s\n", one.sha256.c_str(), one.path.c_str());
  return 0;
}

/// Numbers of examples to generate for each split, and the seed.
struct SplitSizes {
  int64_t train = 0, validation = 0, test = 0;
  uint64_t seed = 1;
  ProgressCallback progress = {};  ///< called with the number of examples generated so far
  int64_t all() const { return train + validation + test; }
};

/// A benchmark whose data can be generated.
struct GeneratedData {
  const char* name;
  int64_t train, validation, test;  // numbers of examples in the benchmark
  int64_t min_validation;  // 0 where the files have no validation part, 1 where a file must hold some
  void (*write)(const ParsedArguments& arguments, const SplitSizes& sizes, const Path& folder);
};

/// Thrown between two examples when a signal has arrived.
struct Interrupted {
  int signal = 0;
};

void throw_if_interrupted() {
  if (const int signal = StopSignals::received()) throw Interrupted{signal};
}

/// Prints the progress of work that takes longer than a second; throws Interrupted when a signal has arrived.
class ProgressReport {
 public:
  explicit ProgressReport(int64_t all) : all_(all) {}

  void operator()(int64_t done) {
    throw_if_interrupted();
    const double now = seconds_now();
    if (done < all_ ? now < next_ : now - began_ < patience) return;
    next_ = now + 5;
    const double left = (now - began_) / static_cast<double>(done) * static_cast<double>(all_ - done);
    progress_.say("made", text(done, " of ", all_,
                               done < all_ ? text(", about ", clock_text(left), " left") : ", writing them"));
  }

 private:
  static constexpr double patience = 1;  // seconds before the first line
  int64_t all_;
  double began_ = seconds_now(), next_ = began_ + patience;
  Progress progress_;
};

/// A folder inside the one that was asked for, which holds files until all of them are written. Its
/// destructor removes it, and the folder around it where this made that and it is empty.
class StagingFolder {
 public:
  explicit StagingFolder(const Path& folder)
      : path(folder / text("unfinished.", io::random_name())),
        folder_(folder),
        was_there_(io::exists(folder)) {}
  StagingFolder(const StagingFolder&) = delete;
  StagingFolder& operator=(const StagingFolder&) = delete;
  ~StagingFolder() {
    try {
      io::remove_all(path);
      if (!was_there_ && io::list(folder_).empty()) io::remove_all(folder_);
    } catch (const Error&) {  // the first error is the one to report
    }
  }
  /// Moves everything into the folder that was asked for.
  void finish() const {
    for (const Path& name : io::list(path)) io::rename_directory(path / name, folder_ / name);
  }
  const Path path;

 private:
  Path folder_;
  bool was_there_;  // whether folder_ existed before
};

/// The examples, divided into training, validation and test part.
std::array<Sequences, 3> split_of(const Sequences& all, const SplitSizes& sizes) {
  const int64_t test_begin = sizes.train + sizes.validation;
  return {all.slice(0, sizes.train), all.slice(sizes.train, test_begin), all.slice(test_begin, all.count())};
}

void listops_files(const ParsedArguments&, const SplitSizes& sizes, const Path& folder) {
  write_listops(folder, split_of(listops(sizes.all(), sizes.seed, {}, sizes.progress), sizes));
}

void pathfinder_files(const ParsedArguments& arguments, const SplitSizes& sizes, const Path& folder) {
  const PathfinderOptions options = pathfinder_options(arguments.integer("side", 32));
  std::vector<PathfinderFacts> metadata;
  const Sequences images = pathfinder(sizes.all(), sizes.seed, options, &metadata, sizes.progress);
  write_pathfinder(folder / "curv_contour_length_14", images, metadata, options,
                   [](int64_t) { throw_if_interrupted(); });
}

void text_files(const ParsedArguments&, const SplitSizes& sizes, const Path& folder) {
  // The benchmark has no validation part: those examples join the training half.
  const Sequences all = verdict_documents(sizes.all(), sizes.seed, {}, sizes.progress);
  const int64_t train = sizes.train + sizes.validation;
  write_reviews(folder, all.slice(0, train), all.slice(train, all.count()));
}

void retrieval_files(const ParsedArguments&, const SplitSizes& sizes, const Path& folder) {
  write_document_pairs(folder, split_of(document_pairs(sizes.all(), sizes.seed, {}, sizes.progress), sizes));
}

void image_files(const ParsedArguments&, const SplitSizes& sizes, const Path& folder) {
  const Sequences all = digits_on_background(sizes.all(), sizes.seed, sizes.progress);
  const int64_t train = sizes.train + sizes.validation;
  write_cifar(folder, all.slice(0, train), all.slice(train, all.count()));
}

constexpr GeneratedData data_kinds[] = {{"listops", 96000, 2000, 2000, 1, listops_files},
                                        {"pathfinder", 160000, 20000, 20000, 0, pathfinder_files},
                                        {"text", 22500, 2500, 25000, 0, text_files},
                                        {"retrieval", 147086, 18090, 17437, 1, retrieval_files},
                                        {"image", 45000, 5000, 10000, 0, image_files}};

/// Writes all files of a kind, or none where a signal interrupts it.
int write_all(const GeneratedData& kind, const ParsedArguments& arguments, SplitSizes& sizes,
              const Path& folder) {
  const StopSignals signals;
  try {
    const StagingFolder staging(folder);
    sizes.progress = ProgressReport(sizes.all());
    kind.write(arguments, sizes, staging.path);
    throw_if_interrupted();
    staging.finish();
  } catch (const Interrupted& interrupted) {
    Progress().say("stopped",
                   text("nothing is left in ", folder, " of what was made; the same command begins anew"));
    return 128 + interrupted.signal;
  }
  io::print_data(folder.string() + "\n");
  return 0;
}

/// Writes the data that the second argument names into the folder --out.
int generate_data(const ParsedArguments& arguments) {
  std::vector<std::string> known;
  for (const GeneratedData& kind : data_kinds) known.emplace_back(kind.name);
  if (arguments.positional.size() != 2) fail("data generate: name what.", suggestion("", known));
  const std::string name = known_word("data generate:", arguments.positional[1], known);
  const GeneratedData& kind = *std::find_if(std::begin(data_kinds), std::end(data_kinds),
                                            [&](const GeneratedData& one) { return name == one.name; });
  constexpr int64_t max_examples = 1'000'000;
  SplitSizes sizes{
      .train = arguments.integer("num-examples", kind.train, 1, max_examples),
      .validation = arguments.integer("validation", kind.validation, kind.min_validation, max_examples),
      .test = arguments.integer("test-size", kind.test, 1, max_examples),
      .seed = static_cast<uint64_t>(arguments.integer("seed", 1, 0, INT64_MAX))};
  const Path folder = arguments.get("out", "data-" + name);
  if (!io::list(folder).empty())
    fail(Fault::file, folder, " is not empty. Give --out a folder that is new or empty.");
  return write_all(kind, arguments, sizes, folder);
}

int run_data(const ParsedArguments& arguments) {
  const std::string what = known_word("data:", arguments.positional[0], {"get", "check", "generate"});
  return what == "get"     ? get_corpus(arguments)
         : what == "check" ? check_pairs(arguments)
                           : generate_data(arguments);
}

}  // namespace

Command command::data() {
  return {.name = "data",
          .about =
              "get NAME: fetch a corpus from its publisher; check PATH: check a file of sentence pairs; "
              "generate NAME: write the embedded data of listops, pathfinder, text, retrieval or image as "
              "the benchmark's files",
          .positional = "get|check|generate NAME|PATH",
          .positional_help = "what to do, and with which corpus, task or file",
          .min_positional = 1,
          .max_positional = 2,
          .options = {{"out", "FOLDER", "where the files go (default: data-NAME)"},
                      {"url", "URL", "fetch from this folder instead of the publisher's"},
                      {"num-examples", "N",
                       "training examples to generate (default: as many as the benchmark has)"},
                      {"validation", "N",
                       "validation examples to generate (default: as many as the benchmark has)"},
                      {"test-size", "N", "test examples to generate (default: as many as the benchmark has)"},
                      {"side", "N", "pixels a side of pathfinder: 32 (the default), 64, 128 or 256"},
                      {"seed", "N", "seed of the generated data (default: 1, as embedded)"},
                      {"from", "LANGUAGE", "source language of check (default: en)"},
                      {"into", "LANGUAGE", "target language of check (default: it)"}},
          .run = run_data};
}

}  // namespace heed
