// heed data: fetching corpora, and checking files before a run.
#include <algorithm>
#include <cstdio>

#include "heed/core/io/files.h"
#include "heed/data/download/download.h"
#include "heed/data/text/corpus.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/commands/generate_data.h"
#include "heed/train/tasks/find_data.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

int get(const ParsedArguments& arguments) {
  std::vector<std::string> known;
  std::string names;
  for (const RemoteCorpus& corpus : remote_corpora()) {
    known.push_back(corpus.name);
    names += (names.empty() ? "" : ", ") + corpus.name;
  }
  if (arguments.positional.size() != 2)
    fail("data get: name one corpus: ", names, ". `heed list data` says what they are.");
  if (std::find(known.begin(), known.end(), arguments.positional[1]) == known.end())
    fail("data get: corpus '", arguments.positional[1], "' is unknown.",
         suggestion(arguments.positional[1], known));
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

int check(const ParsedArguments& arguments) {
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
  const int64_t rest = pairs - split.validation - split.test, tenth = std::max<int64_t>(pairs / 10, 1);
  io::printf("%s\n", to_string(corpus.report).c_str());
  if (rest > 0) {
    io::print(text(rest, " train, ", split.validation, " validation, ", split.test,
                   " test pairs with the default split\n"));
  } else {
    io::print(text(pairs, " pairs; the default split holds out ", split.validation, " + ", split.test,
                   ": train with --data.validation ", tenth, " --data.test_size ", tenth, "\n"));
  }
  for (const SourceFile& one : corpus.report.files)
    io::printf("sha256 %s  %s\n", one.sha256.c_str(), one.path.c_str());
  return 0;
}

int run_data(const ParsedArguments& arguments) {
  if (arguments.positional[0] == "get") return get(arguments);
  if (arguments.positional[0] == "check") return check(arguments);
  if (arguments.positional[0] == "generate") return generate_data(arguments);
  const std::vector<std::string> known{"get", "check", "generate"};
  fail("data: '", arguments.positional[0], "' is unknown.", suggestion(arguments.positional[0], known));
}

}  // namespace

Command command::data() {
  return {"data",
          "get NAME: fetch a corpus from its publisher; check PATH: check a file of sentence pairs; "
          "generate NAME: write the embedded data of listops, pathfinder, text, retrieval or image as the "
          "benchmark's files",
          "get|check|generate NAME|PATH",
          "what to do, and with which corpus, task or file",
          1,
          2,
          {{"out", "FOLDER", "where the files go (default: data-NAME)"},
           {"url", "URL", "fetch from this folder instead of the publisher's"},
           {"num-examples", "N", "training examples to generate (default: as many as the benchmark has)"},
           {"validation", "N", "validation examples to generate, likewise"},
           {"test-size", "N", "test examples to generate, likewise"},
           {"side", "N", "pixels a side of pathfinder: 32 (the default), 64, 128 or 256"},
           {"seed", "N", "of what is generated (default: 1, as embedded)"},
           {"from", "LANGUAGE", "source language of check (default: en)"},
           {"into", "LANGUAGE", "target language of check (default: it)"}},
          false,
          run_data};
}

}  // namespace heed
