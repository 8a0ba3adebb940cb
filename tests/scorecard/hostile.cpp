// Rows B1-B3: damaged files. A subprocess reads thousands of them, to observe crashes, time and memory
// (tests/fuzz/bad_files.cpp); the program itself reads some.
#include <algorithm>
#include <tuple>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/tests/fuzz/mutate.h"
#include "heed/tests/fuzz/refusal.h"
#include "heed/tests/scorecard/rows.h"
#include "heed/tests/scorecard/tiny_runs.h"

namespace heed::scorecard {
namespace {

constexpr int64_t allowance_kib = 64 << 10;  // beyond the file and what a good file takes

/// What many batches found together.
struct Found {
  int64_t cases = 0, refused = 0, bad = 0, undetected = 0, flips = 0, peak_kib = 0;
  double slowest = 0;
};

/// Starts the readers on `count` damaged files of a kind.
void read_many(const Scene& scene, Tally& tally, Found& found, const std::string& kind, const Path& place,
               int64_t count) {
  Command command{
      .words = {(scene.build / "tests/fuzz/bad_files").string(), kind, place.string(), "0", text(count)},
      .folder = scene.room.path(),
      .seconds = 900};
  const Ended ended = run(std::move(command));
  if (!ended.ok()) return tally.fault(text("bad_files ", kind, ": ", ended.said()));
  const Json said = parse_json(ended.out, "what bad_files says");
  const auto number = [&](const char* key) { return said.at(key).integer(); };
  const int64_t bad = number("broken") + number("crashes");
  found.cases += number("cases");
  found.refused += number("refused");
  found.bad += bad;
  found.undetected += number("undetected");
  found.flips += number("flips");
  found.peak_kib = std::max(found.peak_kib, number("peak_kib"));
  found.slowest = std::max(found.slowest, said.at("slowest").real());
  if (number("cases") + number("crashes") != count) tally.fault(text(kind, ": not every file was read"));
  if (bad + number("undetected") > 0) tally.fault(text(kind, ": ", said.at("first").text()));
}

/// What is wrong with how the program took a damaged file; `good` is how it took the good one.
std::string complaint(const Ended& ended, const Ended& good, std::string_view name, int64_t file_bytes) {
  if (ended.hung || ended.signal != 0) return ended.said();
  if (ended.seconds > 1 && ended.cpu > 1) return text(ended.cpu, " s of processor");
  const int64_t maximum = good.peak_kib + file_bytes / 1024 + allowance_kib;
  if (ended.peak_kib > maximum) return text(ended.peak_kib, " KiB, at most ", maximum);
  if (ended.ok()) return "";  // the damage is none to this reader
  if (ended.code != 2 && ended.code != 3) return ended.said();
  const size_t at = ended.err.rfind("error: ");
  if (at == std::string::npos) return "it ends without a word";
  std::string message = ended.err.substr(at);
  const std::string wrong = law::fault_of_refusal(name, message);
  return wrong.empty() ? "" : text(wrong, ": ", message);
}

/// Damaged copies of one file, put where the good one was and read by the program with these words.
void run_many(const Scene& scene, Tally& tally, const Path& file, const std::vector<std::string>& words,
              int64_t count, const std::string& named, bool must_refuse) {
  const std::string bytes = io::read(scene.room / file.string());
  const Ended good = run(scene.heed(words));
  if (!good.ok()) return tally.fault(text(file, " before it is damaged: ", good.said()));
  for (int64_t i = 0; i < count; ++i) {
    const std::string damaged = mutate(bytes, {}, static_cast<uint64_t>(i)).bytes;
    io::write(scene.room / file.string(), damaged);
    const Ended ended = run(scene.heed(words));
    std::string wrong = complaint(ended, good, named, static_cast<int64_t>(damaged.size()));
    if (wrong.empty() && must_refuse && damaged != bytes && ended.ok()) wrong = "the damage was not found";
    tally.add(text(file, ", damage ", i), wrong);
  }
  io::write(scene.room / file.string(), bytes);
}

std::string summary(const Found& found) {
  return text("; in the readers ", found.cases - found.bad, "/", found.cases, " hold (", found.refused,
              " refused), slowest ", static_cast<int64_t>(1e6 * found.slowest), " us, at most ",
              found.peak_kib / 1024, " MiB");
}

}  // namespace

Result mutated_checkpoints(const Scene& scene) {
  Tally tally;
  Found found;
  const Ended trained = run(scene.heed(tiny_train(scene, "a", {"--steps", "20"})));
  if (!trained.ok()) tally.fault(trained.said());
  read_many(scene, tally, found, "checkpoint", run_of(scene, "a"), scene.amount(300, 20000));
  const Path folder = Path("runs/a/ckpt/step_000020");
  for (const char* name : {"model.safetensors", "optim.safetensors", "state.json", "MANIFEST.json"}) {
    const bool manifest = name == std::string("MANIFEST.json");
    run_many(scene, tally, folder / name,
             {"generate", "runs/a", "--max-new-tokens", "1", "--checkpoint", "last"}, scene.amount(3, 100),
             manifest ? folder.string() : name, !manifest);
  }
  return tally.result(text(" runs of the program", summary(found), "; ", found.flips - found.undetected, "/",
                           found.flips, " flips among the numbers found"));
}

Result mutated_tokenizers(const Scene& scene) {
  Tally tally;
  Found found;
  const Ended trained = run(scene.heed(tiny_train(scene, "a", {"--steps", "20"})));
  if (!trained.ok()) tally.fault(trained.said());
  read_many(scene, tally, found, "tokenizer", "-", scene.amount(300, 10000));
  run_many(scene, tally, "runs/a/ckpt/step_000020/tokenizer.text.character",
           {"generate", "runs/a", "--max-new-tokens", "1", "--checkpoint", "last"}, scene.amount(10, 200),
           "tokenizer.text.character", true);
  return tally.result(text(" runs of the program", summary(found)));
}

Result mutated_data(const Scene& scene) {
  Tally tally;
  Found found;
  for (const char* kind : {"idx", "gzip", "npy", "pairs", "config", "json"}) {
    read_many(scene, tally, found, kind, scene.source / "tests/fuzz/corpus" / kind, scene.amount(300, 5000));
  }
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += text("The man has ", i, " cats.\tL'uomo ha ", i, " gatti.\n");
  io::write(scene.room / "pairs.tsv", lines);
  io::write(scene.room / "my.toml", "preset = \"lm\"\n[train]\nmax_steps = 10\nlearning_rate = 1e-3\n");
  run_many(scene, tally, "pairs.tsv", {"data", "check", "pairs.tsv"}, scene.amount(5, 200), "pairs.tsv",
           false);
  run_many(scene, tally, "my.toml", {"show", "my.toml"}, scene.amount(5, 200), "my.toml", false);

  // The odd files that editors and systems make, by name.
  const Ended good = run(scene.heed({"data", "check", "pairs.tsv"}));
  std::string windows;
  for (const char letter : lines) windows += letter == '\n' ? "\r\n" : std::string(1, letter);
  const auto take = [&](const std::string& what, const std::string& told, int64_t bytes) {
    const Ended ended = run(scene.heed({"data", "check", "odd.tsv"}));
    std::string wrong = complaint(ended, good, "odd.tsv", bytes);
    if (wrong.empty() && ended.ok() != told.empty()) wrong = ended.said();
    if (wrong.empty() && ended.err.find(told) == std::string::npos)
      wrong = "not told: " + told + ". " + ended.err;
    tally.add("a file with " + what, wrong);
  };
  const std::tuple<const char*, const char*, std::string> odd[] = {
      {"a byte order mark and CRLF", "", "\xEF\xBB\xBF" + windows},
      {"bad UTF-8", "not UTF-8", lines + "caf\xE9\tcaff\xE8\n"},
      {"a NUL", "NUL", lines + std::string("a\0b\tc\n", 6)},
      {"a line without a tab", "no tab", lines + "a line\n"},
      {"nothing in it", "empty", "\n\r\n"}};
  for (const auto& [what, told, bytes] : odd) {
    io::write(scene.room / "odd.tsv", bytes);
    take(what, told, static_cast<int64_t>(bytes.size()));
  }
  io::write(scene.room / "odd.tsv", lines);
  // In pieces: what this process holds when it starts a child counts as the child's.
  io::Appender appender(scene.room / "odd.tsv");
  const std::string piece(1'000'000, 'x');
  for (int i = 0; i < 100; ++i) appender.raw(piece);
  take("a line of 100 MB", "1048576", 100'000'000);
  return tally.result(text(" runs of the program", summary(found)));
}

}  // namespace heed::scorecard
