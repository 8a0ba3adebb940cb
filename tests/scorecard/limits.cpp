// Rows N1, M1-M4 and K1: non-finite numbers, memory, and the cost of saving.
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <span>

#include "heed/core/io/files.h"
#include "heed/tests/scorecard/rows.h"
#include "heed/tests/scorecard/tiny_runs.h"

namespace heed::scorecard {
namespace {

/// Names of all parameters, out of the header of a checkpoint's weights.
std::vector<std::string> parameters_of(const Path& run) {
  std::string digits = text(checkpoints_of(run).back());
  digits.insert(0, 6 - digits.size(), '0');
  const std::string bytes = io::read(run / "ckpt" / ("step_" + digits) / "model.safetensors");
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  std::vector<std::string> names;
  const Json header = parse_json(std::string_view(bytes).substr(8, length), "model.safetensors");
  for (const JsonMember& one : header.members()) {
    if (one.key != "__metadata__") names.push_back(one.key);
  }
  return names;
}

/// One planted value: where, and the words that must name it.
struct Planted {
  std::string where, named;
};

std::string caught(const Scene& scene, const Planted& planted, int64_t step, const std::string& hash) {
  const Path folder = run_of(scene, "planted");
  io::remove_all(folder);
  const Ended end =
      run(scene.heed_with_fault(text(planted.where, "@", step),
                                tiny_train(scene, "planted", {"--steps", "60", "--validate-every", "20"})));
  if (end.code != 4) return "not code 4: " + end.said();
  for (const std::string& part : {text("at step ", step), planted.named}) {
    if (end.err.find(part) == std::string::npos) return text("does not say '", part, "': ", end.err);
  }
  const int64_t good = (step - 1) / tiny_checkpoint * tiny_checkpoint;
  const std::vector<int64_t> kept = checkpoints_of(folder);
  if ((kept.empty() ? 0 : kept.back()) != good) return text("step ", good, " is not the last checkpoint");
  if (good > 0 && end.err.find(text("Last good: step_0000", good)) == std::string::npos) {
    return "does not name the last good checkpoint: " + end.err;
  }
  const std::string wrong = finish(scene, "planted", {"--steps", "60", "--validate-every", "20"});
  if (!wrong.empty()) return wrong;
  return weights_hash(folder) == hash ? "" : "it ends with other weights";
}

std::string skipped(const Scene& scene, const Planted& planted, int64_t step) {
  const Path folder = run_of(scene, "skipped");
  io::remove_all(folder);
  const Ended end = run(scene.heed_with_fault(
      text(planted.where, "@", step), tiny_train(scene, "skipped", {"--steps", "60", "--on-nan", "skip"})));
  if (!end.ok()) return "--on-nan skip does not go on: " + end.said();
  if (io::read(folder / "metrics.jsonl").find(text("{\"step\": ", step, ", \"skipped\": 1}")) ==
      std::string::npos) {
    return "the skipped step is not counted in metrics.jsonl";
  }
  return "";
}

/// Writes bytes as a .npy file of this shape, such as "2, 3".
void write_array(const Path& path, const std::string& shape, std::span<const std::byte> bytes,
                 const std::string& type = "<f4") {
  std::string header = text("{'descr': '", type, "', 'fortran_order': False, 'shape': (", shape, "), }");
  header.resize(117, ' ');
  io::write(path, std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n" +
                      std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

/// All attentions, as attention/variants.def lists them.
std::vector<std::string> attentions(const Scene& scene) {
  const std::string list = io::read(scene.source / "attention/variants.def");
  std::vector<std::string> out;
  for (size_t at = 0; (at = list.find("\nVARIANT(", at)) != std::string::npos;) {
    at += 9;
    out.push_back(list.substr(at, list.find(')', at) - at));
  }
  return out;
}

/// Runs with --memory: how far they went above it.
struct PeakRule {
  Tally& tally;
  double above = -INFINITY;  // MiB, the most
  int64_t refused = 0;

  void judge(const std::string& what, const Ended& end, int64_t limit, bool must_refuse) {
    constexpr double overhead = 48;  // the program itself, and what its blocks below a page hold
    const double over = static_cast<double>(end.peak_kib) / 1024 - static_cast<double>(limit);
    above = std::max(above, over);
    std::string wrong;
    if (end.code == 7) {
      ++refused;
      for (const char* part : {"memory of the machine: ", " in use and the cap is "}) {
        if (end.err.find(part) == std::string::npos) wrong = text("does not say '", part, "': ", end.said());
      }
    } else if (must_refuse || end.code != 0) {
      wrong = end.said();
    }
    if (over > overhead) wrong = text("it took ", end.peak_kib / 1024, " MiB");
    tally.add(text(what, " with ", limit, " MiB"), wrong);
  }
};

/// Maps of 144 MiB, of every attention or some, under limits that hold none, one, or two of them.
void attend_within_limits(const Scene& scene, PeakRule& rule) {
  constexpr int64_t length = 6144, width = 4;
  std::mt19937_64 generator(scene.seed);
  std::vector<float> numbers(length * width);
  std::vector<std::string> given;
  for (const char* name : {"q", "k", "v", "grad-out"}) {
    for (float& x : numbers) x = std::generate_canonical<float, 20>(generator) - 0.5F;
    const std::string file = text(name, ".npy");
    write_array(scene.room / file, text("1, 1, ", length, ", ", width), std::as_bytes(std::span(numbers)));
    given.insert(given.end(), {text("--", name), file});
  }
  const std::string mask(static_cast<size_t>(length * length), '\1');
  write_array(scene.room / "pattern.npy", text(length, ", ", length), std::as_bytes(std::span(mask)), "|u1");
  const auto attend = [&](const std::string& name, int64_t limit, const std::vector<std::string>& more) {
    std::vector<std::string> words{"attend", name, "--out", "attended", "--memory", text(limit, "M")};
    words.insert(words.end(), given.begin(), given.end());
    words.insert(words.end(), more.begin(), more.end());
    return run(scene.heed(words));
  };
  std::vector<std::string> names{"softmax",       "window",   "local_m",    "hat",
                                 "routing",       "informer", "sinkhorn",   "casinoformer",
                                 "nystromformer", "reformer", "structured", "retention"};
  if (scene.whole) names = attentions(scene);
  for (const std::string& name : names) {
    for (const int64_t limit :
         scene.whole ? std::vector<int64_t>{48, 180, 400} : std::vector<int64_t>{48, 180}) {
      Ended end = attend(name, limit, {});
      if (end.err.find("Add --causal") != std::string::npos) end = attend(name, limit, {"--causal"});
      if (end.code == 2) continue;  // it has no form on given tensors, or needs more of them
      rule.judge(name, end, limit, limit == 48);
    }
  }
  rule.judge("a pattern", attend("softmax", 48, {"--pattern", "pattern.npy", "--no-map"}), 48, true);
}

/// What one look at /proc says of a process.
struct Look {
  int64_t step = 0;
  double kib = 0, cpu = 0;
  int64_t files = 0;
};

Look look_at(pid_t id, const Path& metrics) {
  Look look;
  const Path folder = text("/proc/", id);
  const std::string status = io::read(folder / "status");
  const size_t resident = status.find("VmRSS:");
  if (resident != std::string::npos) look.kib = std::strtod(status.c_str() + resident + 6, nullptr);
  look.files = static_cast<int64_t>(io::list(folder / "fd").size());
  const std::string times = io::read(folder / "stat");
  size_t at = times.rfind(')') + 2;
  for (int field = 3; field < 14; ++field) at = times.find(' ', at) + 1;
  char* next = nullptr;
  look.cpu = std::strtod(times.c_str() + at, &next) + std::strtod(next, nullptr);
  if (!io::exists(metrics)) return look;
  std::ifstream log(metrics);
  log.seekg(std::max<int64_t>(0, io::size(metrics) - 500));
  const std::string tail{std::istreambuf_iterator<char>(log), {}};
  const size_t end = tail.rfind('\n');
  const size_t begin = end == std::string::npos ? end : tail.rfind("{\"step\": ", end);
  if (begin != std::string::npos) {
    std::from_chars(tail.data() + begin + 9, tail.data() + tail.size(), look.step);
  }
  return look;
}

double share_of(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string two_digits(double value) { return text(std::round(100 * value) / 100); }

/// Seconds of processor a step, between two shares of the run.
double step_time(const std::vector<Look>& looks, double from, double to, int64_t last) {
  const auto at = [&](double share) {
    return *std::min_element(looks.begin(), looks.end(), [&](const Look& a, const Look& b) {
      const double wanted = share * static_cast<double>(last);
      return std::abs(static_cast<double>(a.step) - wanted) < std::abs(static_cast<double>(b.step) - wanted);
    });
  };
  const Look begin = at(from), end = at(to);
  return (end.cpu - begin.cpu) / static_cast<double>(std::max<int64_t>(end.step - begin.step, 1));
}

}  // namespace

Result planted_nan(const Scene& scene) {
  if (!io::exists(scene.program_with_faults())) return skip("tests/heed_with_faults is not built beside it");
  const std::string hash = reference_run(scene, {"--steps", "60", "--validate-every", "20"}).hash;
  const std::vector<std::string> names = parameters_of(run_of(scene, "reference"));
  std::vector<Planted> all;
  for (const std::string& name : names) {
    for (const char* value : {"nan", "inf", "-inf"}) {
      all.push_back(
          {text("parameter:", name, ":", value), text("first bad value in ", name, " (", value, ")")});
      all.push_back({text("gradient:", name, ":", value), text("gradient of ", name, " (", value, ")")});
    }
  }
  std::mt19937_64 generator(scene.seed);
  if (!scene.whole) {
    std::shuffle(all.begin(), all.end(), generator);
    all.resize(6);
  }
  Tally tally;
  int64_t skips = 0;
  for (const Planted& planted : all) {
    const auto step = static_cast<int64_t>(1 + generator() % 60);
    tally.add(text(planted.where, "@", step), caught(scene, planted, step, hash));
    if (planted.where.starts_with("gradient")) {
      tally.add(text(planted.where, "@", step, ", skipped"), skipped(scene, planted, step));
      ++skips;
    }
  }
  // Only digits are floats before they reach a model.
  for (const char* value : {"nan", "inf"}) {
    const Ended end = run(scene.heed_with_fault(
        text("input:", value, "@4"),
        {"train", "mnist", "--num-examples", "200", "--test-size", "50", "--d-model", "8", "--heads", "2",
         "--layers", "1", "--d-ff", "8", "--batch-size", "8", "--steps", "6", "--quiet"}));
    const bool named =
        end.err.find(text("at step 4: first bad value in the input (", value, ")")) != std::string::npos;
    tally.add(text("input:", value), end.code == 4 && named ? "" : end.said());
  }
  return tally.result(text(" planted (", names.size(),
                           " parameters and their gradients, inputs) caught at their step and named, last "
                           "good kept, the same weights on resume; ",
                           skips, " skipped and counted"));
}

Result memory_limits(const Scene& scene) {
  const auto attempt = [&](int64_t number, const std::vector<std::string>& more, int64_t address_space) {
    std::vector<std::string> words =
        tiny_train(scene, text("limit", number),
                   {"--batch-size", "128", "--max-length", "256", "--d-model", "128", "--layers", "4",
                    "--steps", "1", "--grad-accumulation", "1"});
    words.insert(words.end(), more.begin(), more.end());
    Command command = scene.heed(words);
    command.address_space = address_space;
    return run(command);
  };
  const int64_t count = scene.amount(2, 10), mebibyte = int64_t{1} << 20;
  if (const Ended end = attempt(2 * count, {}, -1); !end.ok()) {
    return {.verdict = Verdict::miss, .reached = "without a limit it fails: " + end.said()};
  }
  const Path facts = run_of(scene, text("limit", 2 * count)) / "manifest.json";
  const int64_t needed =
      parse_json(io::read(facts), "manifest.json").at("estimate").at("tensor_bytes").integer();
  Tally tally;
  int64_t refused = 0;
  double longest = 0;
  const auto judge = [&](const std::string& what, const Ended& end, bool must_refuse, bool must_train) {
    std::string wrong;
    longest = std::max(longest, end.seconds);
    if (end.hung || (end.code != 0 && (end.code != 7 || must_train))) wrong = end.said();
    if (must_refuse && end.ok()) wrong = "it went beyond the limit";
    if (wrong.empty() && end.code == 7) {
      ++refused;
      for (const char* part : {"error: memory of the machine: ", " held ", "Try "}) {
        if (end.err.find(part) == std::string::npos) wrong = text("does not say '", part, "': ", end.said());
      }
    }
    tally.add(what, wrong);
  };
  for (int64_t i = 0; i < count; ++i) {
    const int64_t cap = 64 + (768 - 64) * i / (count - 1);
    judge(text("--memory ", cap, "M"), attempt(i, {"--memory", text(cap, "M")}, -1),
          cap * mebibyte<needed, cap * mebibyte> needed / 10 * 11);
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t space = (300 + (1200 - 300) * i / (count - 1)) * mebibyte;
    judge(text("address space of ", space / mebibyte, " MiB"), attempt(count + i, {}, space),
          space<needed, space> needed + 500 * mebibyte);
  }
  return tally.result(
      text(" limits (--memory 64 to 768 MiB, address space 300 to 1200 MiB; ", needed / mebibyte,
           " MiB are needed): ", refused,
           " refused before the first step with code 7 and the largest users, the others trained; at most ",
           two_digits(longest), " s"));
}

Result memory_estimate(const Scene& scene) {
  Tally tally;
  std::string reached;
  const Recipes presets =
      recipes(scene, {"translate", "translate-seq2seq", "lm", "mnist", "recall", "lra-text"}, 20);
  for (const Recipe& recipe : presets.all) {
    std::vector<std::string> words{"train",       recipe.preset, "--quiet",         "--name",
                                   recipe.preset, "--steps",     text(recipe.steps)};
    words.insert(words.end(), recipe.less.begin(), recipe.less.end());
    Command command = scene.heed(words);
    command.seconds = 900;
    const Ended end = run(command);
    if (!end.ok()) {
      tally.add(recipe.preset, end.said());
      continue;
    }
    const Json manifest =
        parse_json(io::read(run_of(scene, recipe.preset) / "manifest.json"), "manifest.json");
    const double estimate = manifest.at("estimate").at("memory_bytes").real();
    const double peak = static_cast<double>(end.peak_kib) * 1024;
    const double off = share_of(estimate - peak, peak);
    // Time is told, not judged: here it is a few steps beside whatever else the machine does.
    const double time_off = 100 * manifest.at("took").at("time_estimate_off").real();
    reached += text(reached.empty() ? " presets within 10 %: " : ", ", recipe.preset, " ", two_digits(off),
                    " % of ", static_cast<int64_t>(peak / 1e6), " MB (time ", std::round(time_off), " %)");
    tally.add(recipe.preset, std::abs(off) <= 10 ? ""
                                                 : text("estimated ", static_cast<int64_t>(estimate / 1e6),
                                                        " MB, it took ", static_cast<int64_t>(peak / 1e6)));
    io::remove_all(run_of(scene, recipe.preset));
  }
  return tally.result(reached + presets.left_out);
}

Result memory_of_lists(const Scene& scene) {
  Tally tally;
  PeakRule rule{tally};
  attend_within_limits(scene, rule);
  write_array(scene.room / "empty.npy", "100000000, 0, 0", {});
  const Ended empty = run(scene.heed({"structure", "empty.npy"}));
  tally.add("an array without elements",
            empty.code == 3 && empty.peak_kib < 64 * 1024
                ? ""
                : text("it took ", empty.peak_kib / 1024, " MiB: ", empty.said()));
  std::mt19937_64 generator(scene.seed);
  const int64_t megabytes = scene.amount(1, 10);
  std::string letters;
  for (int64_t i = 0; i < megabytes * 1000000; ++i) letters += static_cast<char>('a' + generator() % 26);
  io::write(scene.room / "letters.txt", letters);
  Command learn = scene.heed(
      tiny_train(scene, "letters", {"--data", "letters.txt", "--tokenizer", "byte_pair", "--dry-run"}));
  learn.seconds = 600;
  const Ended learned = run(learn);
  tally.add("a text without spaces", learned.ok() && learned.peak_kib < 500 * 1024 && learned.cpu < 60
                                         ? ""
                                         : text("it took ", learned.peak_kib / 1024, " MiB and ", learned.cpu,
                                                " s: ", learned.said()));
  return tally.result(text(" runs: ", rule.refused, " refused with code 7; at most ", two_digits(rule.above),
                           " MiB above the limit; ", megabytes, " MB without a space learned in ",
                           two_digits(learned.cpu), " s of the processor and ", learned.peak_kib / 1024,
                           " MiB"));
}

Result soak(const Scene& scene) {
  const int64_t steps = scene.hours > 0 ? int64_t{1} << 40 : scene.amount(10000, 1000000);
  Process process(scene.heed(tiny_train(
      scene, "soak",
      {"--steps", text(steps), "--validate-every", text(std::min<int64_t>(steps / 50, 20000)),
       "--checkpoint-every", text(std::min<int64_t>(steps / 50, 20000)), "--grad-accumulation", "1"})));
  const double until = scene.hours > 0 ? scene.hours * 3600 : 7200;
  const double pause = scene.hours > 0 ? 10 : scene.whole ? 0.25 : 0.02;
  std::vector<Look> looks;
  const Path metrics = run_of(scene, "soak") / "metrics.jsonl";
  bool stopped = false;
  while (process.running() && process.seconds() < until + 60) {
    try {
      const Look look = look_at(process.id(), metrics);
      if (look.step > 0 && look.step < steps) looks.push_back(look);
    } catch (const Error&) {
      break;  // it ended meanwhile
    }
    if (process.seconds() > until && !stopped) {
      process.signal(SIGTERM);
      stopped = true;
    }
    sleep_for(pause);
  }
  const Ended end = process.wait();
  if (end.code != (stopped ? 143 : 0))
    return {.verdict = Verdict::miss, .reached = "the run failed: " + end.said()};
  if (looks.size() < 10)
    return {.verdict = Verdict::miss, .reached = text("only ", looks.size(), " looks at /proc")};
  const int64_t last = looks.back().step;
  // The last tenth counts against what came after the first tenth, which is for warming up.
  double early = 0, late = 0;
  int64_t max_files = 0, fewest_files = INT64_MAX;
  for (const Look& look : looks) {
    const double share = static_cast<double>(look.step) / static_cast<double>(last);
    if (share < 0.1) continue;
    // A checkpoint or a log has a file open for a moment: the fewest count.
    fewest_files = std::min(fewest_files, look.files);
    max_files = std::max(max_files, look.files);
    if (share < 0.3) early = std::max(early, look.kib);
    if (share > 0.8) late = std::max(late, look.kib);
  }
  const double growth = share_of(late - early, early);
  const double before = step_time(looks, 0.1, 0.4, last), after = step_time(looks, 0.7, 1, last);
  const double drift = share_of(after - before, before);
  Result result{.verdict = Verdict::ok,
                .reached = text(last, " steps in ", static_cast<int64_t>(end.seconds), " s: memory ",
                                two_digits(growth), " % (", static_cast<int64_t>(early), " to ",
                                static_cast<int64_t>(late), " KiB), files open ", fewest_files, " to ",
                                max_files, ", step time ", two_digits(drift), " %")};
  const double steady = scene.whole ? 5 : 50;  // a second of it says little of time
  if (growth > 1 || drift > steady || max_files > fewest_files + 3) result.verdict = Verdict::miss;
  return result;
}

Result checkpoint_overhead(const Scene& scene) {
  Result result{.verdict = Verdict::ok, .reached = ""};
  const std::vector<std::string> presets =
      scene.whole ? std::vector<std::string>{"translate", "lm", "shakespeare-cpu", "mnist"}
                  : std::vector<std::string>{"lm"};
  for (const std::string& preset : presets) {
    std::vector<std::string> less;
    if (preset == "translate")
      less = {"--num-examples", "3000", "--validation", "16", "--test-size", "16", "--bleu-pairs", "1"};
    if (preset == "lm" || preset == "shakespeare-cpu") less = {"--data", plant_text(scene)};
    int64_t number = 0;
    const auto seconds = [&](int64_t steps, int64_t every) {
      double best = INFINITY;
      for (int64_t i = 0; i < scene.amount(1, 3); ++i) {
        std::vector<std::string> words{"train",
                                       preset,
                                       "--quiet",
                                       "--name",
                                       text(preset, number++),
                                       "--steps",
                                       text(steps),
                                       "--checkpoint-every",
                                       text(every),
                                       "--validate-every",
                                       "1000000"};
        words.insert(words.end(), less.begin(), less.end());
        const Ended end = run(scene.heed(words));
        if (!end.ok()) fail(Fault::internal, preset, ": ", end.said());
        best = std::min(best, end.seconds);
      }
      return best;
    };
    const int64_t steps = scene.amount(20, 60);
    const double short_run = seconds(steps / 2, 1000000), plain = seconds(steps, 1000000),
                 saving = seconds(steps, 1);
    const double step = std::max(plain - short_run, 1e-6) / static_cast<double>(steps - steps / 2);
    const double save = std::max(saving - plain, 0.0) / static_cast<double>(steps - 1);
    // By default a run saves where it validates.
    const Ended shown = run(scene.heed({"train", preset, "--dry-run"}));
    const auto value = [&](const std::string& key) {
      const size_t at = shown.out.find(text("\n", key, " = "));
      return at == std::string::npos ? 0.0 : std::strtod(shown.out.c_str() + at + key.size() + 4, nullptr);
    };
    double interval = value("validate_every");
    if (interval == 0) interval = std::max(value("steps") / 10, 1.0);
    if (value("steps") == 0) interval = 90;  // mnist: a tenth of two passes over its digits
    const double overhead = share_of(save, interval * step + save);
    result.reached +=
        text(result.reached.empty() ? "" : "; ", preset, " ", two_digits(overhead), " % (a save ",
             two_digits(1000 * save), " ms, every ", interval, " steps of ", two_digits(1000 * step), " ms)");
    const double maximum = scene.whole ? 3.5 : 35;  // two short runs beside other tests say little of time
    if (overhead > maximum) result.verdict = Verdict::miss;
  }
  return result;
}

}  // namespace heed::scorecard
