// Embedded data in the forms of the benchmark's files.
#include "train/commands/generate_data.h"

#include <cstdio>

#include "attention/spec.h"
#include "core/io.h"
#include "data/cifar.h"
#include "data/labelled_text.h"
#include "data/ledgers.h"
#include "data/listops.h"
#include "data/pathfinder.h"

namespace heed {
namespace {

/// How many examples of each split, and the numbers they are made from.
struct Wanted {
  int64_t train = 0, validation = 0, test = 0;
  uint64_t seed = 1;
  int64_t all() const { return train + validation + test; }
};

struct Kind {
  const char* name;
  int64_t train, validation, test;  // as many as the benchmark has
  void (*write)(const Invocation& call, const Wanted& wanted, const Path& folder);
};

std::array<Sequences, 3> cut(const Sequences& all, const Wanted& wanted) {
  const int64_t two = wanted.train + wanted.validation;
  return {all.slice(0, wanted.train), all.slice(wanted.train, two), all.slice(two, all.count())};
}

void listops_files(const Invocation&, const Wanted& wanted, const Path& folder) {
  write_listops(folder, cut(listops(wanted.all(), wanted.seed), wanted));
}

void pathfinder_files(const Invocation& call, const Wanted& wanted, const Path& folder) {
  const PathfinderOptions options = pathfinder_options(call.integer("side", 32));
  std::vector<PathfinderFacts> facts;
  const Sequences images = pathfinder(wanted.all(), wanted.seed, options, &facts);
  write_pathfinder(folder / "curv_contour_length_14", images, facts, options);
}

void text_files(const Invocation&, const Wanted& wanted, const Path& folder) {
  // The benchmark has no validation part: those examples join the training half.
  const Sequences all = ledgers(wanted.all(), wanted.seed);
  const int64_t train = wanted.train + wanted.validation;
  write_reviews(folder, all.slice(0, train), all.slice(train, all.count()));
}

void retrieval_files(const Invocation&, const Wanted& wanted, const Path& folder) {
  write_document_pairs(folder, cut(paired_ledgers(wanted.all(), wanted.seed), wanted));
}

void image_files(const Invocation&, const Wanted& wanted, const Path& folder) {
  const Sequences all = grounded_digits(wanted.all(), wanted.seed);
  const int64_t train = wanted.train + wanted.validation;
  write_cifar(folder, all.slice(0, train), all.slice(train, all.count()));
}

constexpr Kind kinds[] = {{"listops", 96000, 2000, 2000, listops_files},
                          {"pathfinder", 160000, 20000, 20000, pathfinder_files},
                          {"text", 22500, 2500, 25000, text_files},
                          {"retrieval", 147086, 18090, 17437, retrieval_files},
                          {"image", 45000, 5000, 10000, image_files}};

}  // namespace

int generate_data(const Invocation& call) {
  std::vector<std::string> known;
  for (const Kind& kind : kinds) known.emplace_back(kind.name);
  if (call.words.size() != 2) fail("data generate: name what.", suggestion("", known));
  for (const Kind& kind : kinds) {
    if (call.words[1] != kind.name) continue;
    Wanted wanted{.train = call.integer("examples", kind.train),
                  .validation = call.integer("validation", kind.validation),
                  .test = call.integer("held-out", kind.test)};
    for (const auto& [name, value, least] : {std::tuple{"examples", wanted.train, int64_t{1}},
                                             {"validation", wanted.validation, int64_t{0}},
                                             {"held-out", wanted.test, int64_t{1}}}) {
      if (value < least || value > 1'000'000)
        fail("--", name, " = ", value, ". It must be ", least, " to 1000000.");
    }
    const int64_t seed = call.integer("seed", 1);
    if (seed < 0) fail("--seed = ", seed, ". It must be at least 0.");
    wanted.seed = static_cast<uint64_t>(seed);
    const Path folder = call.get("out", "data-" + call.words[1]);
    if (!io::list(folder).empty())
      fail(Fault::file, folder, " is not empty. Give --out a folder that is new or empty.");
    kind.write(call, wanted, folder);
    std::printf("%s\n", folder.c_str());
    return 0;
  }
  fail("data generate: '", call.words[1], "' is unknown.", suggestion(call.words[1], known));
}

}  // namespace heed
