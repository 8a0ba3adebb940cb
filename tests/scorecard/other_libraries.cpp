// Rows D3, G1 and G2: any BLAS library, and gradients of all ops and attentions.
#include <array>
#include <cstdlib>
#include <filesystem>

#include "heed/core/io/files.h"
#include "heed/tests/scorecard/rows.h"
#include "heed/tests/scorecard/tiny_runs.h"

namespace heed::scorecard {
namespace {

namespace fs = std::filesystem;

/// A build of OpenBLAS that can be put before the system's own.
struct Library {
  std::string build;  ///< as `heed env` names it
  Path folder;        ///< the folder that holds its libopenblas.so.0
};

/// The folder openblas-BUILD below `root` that holds the library, as Debian's packages lay it; or nothing.
Path below(const Path& root, const std::string& build) {
  std::error_code ignored;
  for (auto at = fs::recursive_directory_iterator(root, ignored); at != fs::recursive_directory_iterator();
       at.increment(ignored)) {
    if (ignored) break;
    if (at->path().filename() == "openblas-" + build && io::exists(at->path() / "libopenblas.so.0"))
      return at->path();
  }
  return {};
}

/// What is installed, or lies in the folder that HEED_OPENBLAS names, or (in the long form) can be unpacked
/// from a package without being installed.
std::vector<Library> libraries(const Scene& scene) {
  std::vector<Library> found;
  const char* named = std::getenv("HEED_OPENBLAS");
  for (const std::string build : {"pthread", "serial", "openmp"}) {
    Path folder = named != nullptr ? below(named, build) : Path();
    for (const char* machine : {"x86_64-linux-gnu", "aarch64-linux-gnu"}) {
      const Path installed = Path("/usr/lib") / machine / ("openblas-" + build);
      if (folder.empty() && io::exists(installed / "libopenblas.so.0")) folder = installed;
    }
    if (folder.empty() && scene.whole && have("apt-get") && have("dpkg-deb")) {
      const Path place = scene.room / build;
      io::make_directories(place);
      run({.words = {"sh", "-c", "apt-get download libopenblas0-" + build + " && dpkg-deb -x *.deb ."},
           .folder = place});
      folder = below(place, build);
    }
    if (!folder.empty()) found.push_back({build, folder});
  }
  return found;
}

/// The build that a run with these settings really gets.
std::string build_in_use(const Scene& scene,
                         const std::vector<std::pair<std::string, std::string>>& environment) {
  Command command = scene.heed({"env", "--json"});
  command.environment = environment;
  const Ended end = run(command);
  return end.ok() ? parse_json(end.out, "heed env").at("blas_build").text() : end.said();
}

/// A program of tests and those of its cases to run: how many checks passed, or what is wrong.
struct Checked {
  int64_t checks = 0;
  std::string wrong;
};

Checked checked(const Scene& scene, const std::string& tests, const std::string& cases,
                const std::vector<std::pair<std::string, std::string>>& environment = {}) {
  const Path program = scene.build / "tests" / tests;
  const Ended end = run({.words = {program.string(), cases},
                         .folder = scene.room.path(),
                         .environment = environment,
                         .seconds = 600});
  const size_t passed = end.out.find("All tests passed (");
  if (end.ok() && passed != std::string::npos)
    return {.checks = std::atoll(end.out.c_str() + passed + 18), .wrong = ""};
  return {.checks = 0, .wrong = end.ok() ? "there is no such test" : end.said()};
}

std::vector<std::string> variant_names(const Scene& scene) {
  std::vector<std::string> names;
  const Ended end = run(scene.heed({"list", "attention", "--json"}));
  const Json list = parse_json(end.out, "heed list");
  for (const Json& one : list.list()) names.push_back(one.at("name").text());
  return names;
}

std::vector<std::pair<std::string, std::string>> with(const Library& library, const std::string& isa = "") {
  return {{"LD_LIBRARY_PATH", library.folder.string()}, {"HEED_ISA", isa}};
}

/// Every preset with every build.
void train_presets(const Scene& scene, const std::vector<Library>& libraries, Tally& tally,
                   std::string& left_out) {
  const Recipes presets = recipes(scene, {}, 3);
  left_out = presets.left_out;
  for (const Recipe& recipe : presets.all) {
    std::string first;
    for (const Library& library : libraries) {
      const std::string name = recipe.preset + "-" + library.build;
      std::vector<std::string> words{"train", recipe.preset, "--quiet",         "--name",
                                     name,    "--steps",     text(recipe.steps)};
      words.insert(words.end(), recipe.less.begin(), recipe.less.end());
      Command command = scene.heed(words);
      command.environment = with(library);
      command.seconds = 900;
      const Ended end = run(command);
      const std::string hash = end.ok() ? weights_hash(run_of(scene, name)) : "";
      if (first.empty()) first = hash;
      tally.add(name, !end.ok() ? end.said() : hash == first ? "" : "other weights");
      io::remove_all(run_of(scene, name));
    }
  }
}

constexpr const char* of_ops = "ops: the gradient is that of central differences*";

}  // namespace

Result any_blas(const Scene& scene) {
  const std::vector<Library> all = libraries(scene);
  if (all.size() < 2) {
    return skip(text("only ", all.empty() ? "an unknown" : "the " + all[0].build,
                     " build is installed; --long unpacks the others, or HEED_OPENBLAS names their folder"));
  }
  Tally tally;
  int64_t number = 0;
  std::string names;
  for (const Library& library : all) names += (names.empty() ? "" : ", ") + library.build;
  // In single precision wide CPUs use products of our own; a narrower set of instructions brings BLAS back.
  std::vector<std::string> sets{""};
  Command narrow = scene.heed({"env"});
  narrow.environment = {{"HEED_ISA", "avx2"}};
  if (scene.whole && run(narrow).ok()) sets.emplace_back("avx2");
  const std::vector<int64_t> numbers_of_threads =
      scene.whole ? std::vector<int64_t>{1, 2, 3, 4, 8} : std::vector<int64_t>{1, 2, 4};
  for (const std::string& isa : sets) {
    for (const std::string precision : {"f32", "f64"}) {
      std::string first;
      for (const Library& library : all) {
        const auto environment = with(library, isa);
        if (const std::string found = build_in_use(scene, environment); found != library.build) {
          tally.fault(text("LD_LIBRARY_PATH = ", library.folder, " gives the build ", found));
          continue;
        }
        if (isa.empty() && precision == "f64" && io::exists(scene.build / "tests/core_tests")) {
          tally.add(text("products begun by two threads at once, ", library.build),
                    checked(scene, "core_tests", "blas: two threads*", environment).wrong);
        }
        for (const int64_t threads : numbers_of_threads) {
          const std::string name = text("run", number++);
          const std::string steps = text(scene.amount(3, 20));
          Command command =
              scene.heed({"train", "lm", "--num-examples", "20000", "--d-model", "128", "--batch-size", "32",
                          "--precision", precision, "--steps", steps, "--validate-every", steps, "--threads",
                          text(threads), "--name", name, "--quiet"});
          command.environment = environment;
          command.seconds = 600;
          const Ended end = run(command);
          const std::string hash = end.ok() ? weights_hash(run_of(scene, name)) : "";
          if (first.empty()) first = hash;
          tally.add(
              text(precision, " ", isa, " with the ", library.build, " build and ", threads, " threads"),
              !end.ok()       ? end.said()
              : hash == first ? ""
                              : "other weights");
        }
      }
    }
  }
  std::string left_out;
  if (scene.whole) train_presets(scene, all, tally, left_out);
  return tally.result(text(" runs (", names, "; ", numbers_of_threads.size(), " numbers of threads to ",
                           numbers_of_threads.back(), ", f32 and f64", sets.size() > 1 ? ", avx2 too" : "",
                           scene.whole ? "; every preset" + left_out : "",
                           ") end with the same weights, and products begun at once are right"));
}

Result gradients(const Scene& scene) {
  if (!io::exists(scene.build / "tests/autograd_tests")) return skip("the tests are not built");
  Tally tally;
  const Checked ops = checked(scene, "autograd_tests", of_ops);
  tally.add("ops", ops.wrong);
  const std::vector<std::string> names = variant_names(scene);
  for (const std::string& name : names)
    tally.add(name, checked(scene, "attention_tests", name + ": gradients are those of the function").wrong);
  return tally.result(text(" hold: the op table (", ops.checks, " checks within 1e-6 relative in f64) and ",
                           names.size(),
                           " variants, each alone, causal and across, padded and with dropout"));
}

Result gradients_of_all(const Scene& scene) {
  if (!io::exists(scene.build / "tests/autograd_tests")) return skip("the tests are not built");
  Tally tally;
  tally.add("ops",
            checked(scene, "autograd_tests", "ops: every op declared in autograd/ops.h has a row").wrong);
  const Ended listed = run({.words = {(scene.build / "tests/attention_tests").string(), "--list-tests"},
                            .folder = scene.room.path()});
  const std::vector<std::string> names = variant_names(scene);
  for (const std::string& name : names) {
    const bool there = listed.out.find("\n  " + name + ": gradients are those") != std::string::npos;
    tally.add(name, there ? "" : "its gradient is not checked");
  }
  return tally.result(text(": every op of autograd/ops.h and each of ", names.size(), " variants"));
}

}  // namespace heed::scorecard
