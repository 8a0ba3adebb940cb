// Embedded data in the forms of the benchmark's files.
#include "heed/train/commands/generate_data.h"

#include <cstdio>

#include "heed/attention/spec.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/data/formats/cifar.h"
#include "heed/data/formats/labelled_documents.h"
#include "heed/data/synthetic/digits.h"
#include "heed/data/synthetic/listops.h"
#include "heed/data/synthetic/long_documents.h"
#include "heed/data/synthetic/pathfinder.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/progress/progress.h"

namespace heed {
namespace {

/// How many examples of each split, and the numbers they are made from.
struct Wanted {
  int64_t train = 0, validation = 0, test = 0;
  uint64_t seed = 1;
  ProgressCallback told = {};  ///< hears how many there are
  int64_t all() const { return train + validation + test; }
};

struct Kind {
  const char* name;
  int64_t train, validation, test;  // as many as the benchmark has
  int64_t least_validation;  // 0 where the files have no validation part, 1 where a file must hold some
  void (*write)(const ParsedArguments& arguments, const Wanted& wanted, const Path& folder);
};

/// Thrown between two examples.
struct Interrupted {
  int signal = 0;
};

void look_for_signal() {
  if (const int signal = StopSignals::received()) throw Interrupted{signal};
}

/// Says how far it is where that takes longer than a moment, and ends the work at a signal.
class Watch {
 public:
  explicit Watch(int64_t all) : all_(all) {}

  void operator()(int64_t done) {
    look_for_signal();
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

/// A folder inside the one that was asked for, where files lie until all of them are written. Takes away
/// itself and nothing else, and the folder around it where it made that and nothing is in it.
class Unfinished {
 public:
  explicit Unfinished(const Path& folder)
      : path(folder / text("unfinished.", io::random_name())),
        folder_(folder),
        was_there_(io::exists(folder)) {}
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    try {
      io::remove_all(path);
      if (!was_there_ && io::list(folder_).empty()) io::remove_all(folder_);
    } catch (const Error&) {  // the first error is the one to report
    }
  }
  /// Gives everything its place.
  void finish() const {
    for (const Path& name : io::list(path)) io::rename_directory(path / name, folder_ / name);
  }
  const Path path;

 private:
  Path folder_;
  bool was_there_;
};

std::array<Sequences, 3> cut(const Sequences& all, const Wanted& wanted) {
  const int64_t two = wanted.train + wanted.validation;
  return {all.slice(0, wanted.train), all.slice(wanted.train, two), all.slice(two, all.count())};
}

void listops_files(const ParsedArguments&, const Wanted& wanted, const Path& folder) {
  write_listops(folder, cut(listops(wanted.all(), wanted.seed, {}, wanted.told), wanted));
}

void pathfinder_files(const ParsedArguments& arguments, const Wanted& wanted, const Path& folder) {
  const PathfinderOptions options = pathfinder_options(arguments.integer("side", 32));
  std::vector<PathfinderFacts> metadata;
  const Sequences images = pathfinder(wanted.all(), wanted.seed, options, &metadata, wanted.told);
  write_pathfinder(folder / "curv_contour_length_14", images, metadata, options,
                   [](int64_t) { look_for_signal(); });
}

void text_files(const ParsedArguments&, const Wanted& wanted, const Path& folder) {
  // The benchmark has no validation part: those examples join the training half.
  const Sequences all = verdict_documents(wanted.all(), wanted.seed, {}, wanted.told);
  const int64_t train = wanted.train + wanted.validation;
  write_reviews(folder, all.slice(0, train), all.slice(train, all.count()));
}

void retrieval_files(const ParsedArguments&, const Wanted& wanted, const Path& folder) {
  write_document_pairs(folder, cut(document_pairs(wanted.all(), wanted.seed, {}, wanted.told), wanted));
}

void image_files(const ParsedArguments&, const Wanted& wanted, const Path& folder) {
  const Sequences all = digits_on_background(wanted.all(), wanted.seed, wanted.told);
  const int64_t train = wanted.train + wanted.validation;
  write_cifar(folder, all.slice(0, train), all.slice(train, all.count()));
}

constexpr Kind data_kinds[] = {{"listops", 96000, 2000, 2000, 1, listops_files},
                               {"pathfinder", 160000, 20000, 20000, 0, pathfinder_files},
                               {"text", 22500, 2500, 25000, 0, text_files},
                               {"retrieval", 147086, 18090, 17437, 1, retrieval_files},
                               {"image", 45000, 5000, 10000, 0, image_files}};

/// Everything or nothing.
int write_all(const Kind& kind, const ParsedArguments& arguments, Wanted& wanted, const Path& folder) {
  const StopSignals signals;
  try {
    const Unfinished unfinished(folder);
    wanted.told = Watch(wanted.all());
    kind.write(arguments, wanted, unfinished.path);
    look_for_signal();
    unfinished.finish();
  } catch (const Interrupted& interrupted) {
    Progress().say("stopped",
                   text("nothing is left in ", folder, " of what was made; the same command begins anew"));
    return 128 + interrupted.signal;
  }
  io::print_data(folder.string() + "\n");
  return 0;
}

}  // namespace

int generate_data(const ParsedArguments& arguments) {
  std::vector<std::string> known;
  for (const Kind& kind : data_kinds) known.emplace_back(kind.name);
  if (arguments.positional.size() != 2) fail("data generate: name what.", suggestion("", known));
  for (const Kind& kind : data_kinds) {
    if (arguments.positional[1] != kind.name) continue;
    Wanted wanted{.train = arguments.integer("num-examples", kind.train),
                  .validation = arguments.integer("validation", kind.validation),
                  .test = arguments.integer("test-size", kind.test)};
    for (const auto& [name, value, least] : {std::tuple{"num-examples", wanted.train, int64_t{1}},
                                             {"validation", wanted.validation, kind.least_validation},
                                             {"test-size", wanted.test, int64_t{1}}}) {
      if (value < least || value > 1'000'000)
        fail("--", name, " = ", value, ". It must be ", least, " to 1000000.");
    }
    const int64_t seed = arguments.integer("seed", 1);
    if (seed < 0) fail("--seed = ", seed, ". It must be at least 0.");
    wanted.seed = static_cast<uint64_t>(seed);
    const Path folder = arguments.get("out", "data-" + arguments.positional[1]);
    if (!io::list(folder).empty())
      fail(Fault::file, folder, " is not empty. Give --out a folder that is new or empty.");
    return write_all(kind, arguments, wanted, folder);
  }
  fail("data generate: '", arguments.positional[1], "' is unknown.",
       suggestion(arguments.positional[1], known));
}

}  // namespace heed
