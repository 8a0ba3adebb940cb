// Row V1: runs of other versions and machines, and impossible states.
#include <filesystem>
#include <limits>

#include "heed/core/io/files.h"
#include "heed/core/io/hash.h"
#include "heed/core/io/json.h"
#include "heed/tests/scorecard/rows.h"
#include "heed/tests/scorecard/tiny_runs.h"

namespace heed::scorecard {
namespace {

Json json_of(const Path& path) { return parse_json(io::read(path), path.string()); }

void copy_run(const Path& from, const Path& to) {
  io::remove_all(to);
  io::make_directories(to.parent_path());
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

/// What is wrong with how a command ended: its code, and what it must and must not say.
std::string complaint(const Ended& end, int code, const std::vector<std::string>& says,
                      const std::string& never = "") {
  if (end.code != code) return end.said();
  for (const std::string& part : says) {
    if ((end.out + end.err).find(part) == std::string::npos)
      return text("does not say '", part, "': ", end.said());
  }
  if (!never.empty() && (end.out + end.err).find(never) != std::string::npos)
    return text("says '", never, "'");
  return "";
}

/// A run folder of 0.1 is read by every verb, and goes on.
void read_older(const Scene& scene, Tally& tally) {
  copy_run(scene.source / "tests/integration/fixtures/run-0.1", scene.room / "old");
  const auto must = [&](const std::vector<std::string>& words, const std::vector<std::string>& says) {
    tally.add("0.1: " + words[0], complaint(run(scene.heed(words)), 0, says));
  };
  must({"evaluate", "old"}, {"\n  loss ", " 5.11"});
  must({"translate", "old", "The man sees a dog."}, {});
  must({"inspect", "old", "The man sees a dog."}, {});
  must({"compare", "old"}, {"0.8233", "1840"});
  must({"resume", "old", "--steps", "8", "--threads", "1"}, {"step 8/8", "(source unknown"});
  must({"evaluate", "old", "--checkpoint", "8"}, {"checkpoint of step 8"});
}

/// What a newer heed wrote is called that.
void name_newer(const Scene& scene, Tally& tally) {
  const Path folder = scene.room / "newer", fixture = scene.source / "tests/integration/fixtures/run-0.1";
  for (const char* file : {"manifest.json", "ckpt/step_000006/MANIFEST.json"}) {
    for (const int64_t format : {int64_t{4}, int64_t{99}, std::numeric_limits<int64_t>::max()}) {
      copy_run(fixture, folder);
      io::write(folder / file, json_of(folder / file).set("format", format).dump());
      for (const char* verb : {"resume", "evaluate"}) {
        const Ended end = run(scene.heed({verb, "newer"}));
        tally.add(text(verb, ", format ", format, " in ", file),
                  complaint(end, 3,
                            {text("a newer heed ("), text("format ", format, "; this program reads up to ")},
                            "damaged"));
      }
    }
  }
}

/// A resume by another program or machine is told, and one on other threads is not.
void tell_others(const Scene& scene, Tally& tally) {
  const Ended trained = run(scene.heed(tiny_train(scene, "whole", {"--steps", "60"})));
  if (!trained.ok()) return tally.fault("the run itself: " + trained.said());
  const std::vector<std::pair<const char*, Json>> others{
      {"isa", "avx1024"}, {"blas_core", "Abacus"}, {"heed", "0.0.9"}, {"source", "000000000000"},
      {"compiler", "cc"}, {"device", "abacus"},    {"processes", 3},  {"threads", 77}};
  for (const auto& [key, value] : others) {
    const Path folder = run_of(scene, "other");
    copy_run(run_of(scene, "whole"), folder);
    Json manifest = json_of(folder / "manifest.json");
    if (manifest.find("sessions") == nullptr) return tally.fault("manifest.json lists no sessions");
    std::vector<Json> sessions = manifest.at("sessions").list();
    sessions.back().set(key, value);
    io::write(folder / "manifest.json", manifest.set("sessions", sessions).dump());
    const Ended end = run(scene.heed(tiny_resume("other", {"--steps", "61", "--quiet"})));
    const std::string word = value.is_text() ? value.text() : value.dump();
    const bool silent = key == std::string("threads");
    std::string wrong =
        silent ? complaint(end, 0, {}, "warning") : complaint(end, 0, {"warning: ", word, "neither"});
    if (wrong.empty() && json_of(folder / "manifest.json").at("sessions").list().size() != 2)
      wrong = "manifest.json does not list both sessions";
    tally.add(text("resumed where ", key, " was ", word), wrong);
  }
}

/// Numbers of state.json at the ends of their types, under check sums that fit.
void refuse_states(const Scene& scene, Tally& tally) {
  const Path folder = scene.room / "state", point = folder / "ckpt/step_000006";
  const Path fixture = scene.source / "tests/integration/fixtures/run-0.1";
  const Json good = json_of(fixture / "ckpt/step_000006/state.json"),
             sums = json_of(fixture / "ckpt/step_000006/MANIFEST.json");
  for (const char* key : {"step", "epoch", "position", "tick", "draws", "validated", "best_step",
                          "without_better", "seconds", "window_steps"}) {
    for (const Json& value : {Json(std::numeric_limits<int64_t>::max()),
                              Json(std::numeric_limits<int64_t>::min()), Json(1e308), Json(-7), Json()}) {
      copy_run(fixture, folder);
      const std::string bytes = Json(good).set(key, value).dump();
      io::write(point / "state.json", bytes);
      Json files = sums.at("files");
      files.set("state.json", Json::object({{"size", Json(bytes.size())},
                                            {"crc32c", crc32c_hex(bytes)},
                                            {"sha256", sha256_hex(bytes)}}));
      io::write(point / "MANIFEST.json", Json(sums).set("files", files).dump());
      const Ended end = run(scene.heed({"resume", "state", "--steps", "8", "--quiet"}));
      tally.add(text(key, " = ", value.dump()),
                complaint(end, 3,
                          {"state.json", text(key, " is ", value.dump(), ". It must be "), "--checkpoint"}));
    }
  }
}

}  // namespace

Result versions(const Scene& scene) {
  Tally tally;
  read_older(scene, tally);
  name_newer(scene, tally);
  tell_others(scene, tally);
  refuse_states(scene, tally);
  return tally.result(
      " hold: a run of 0.1 is read and goes on, newer formats are named, another program or machine on "
      "resume is "
      "told, states that cannot be are refused");
}

}  // namespace heed::scorecard
