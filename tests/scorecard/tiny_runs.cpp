// Makes and inspects tiny runs.
#include "heed/tests/scorecard/tiny_runs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "heed/core/io/files.h"
#include "heed/core/io/hash.h"

namespace heed::scorecard {
namespace {

/// Scalars of one TensorBoard file: (step, count) a record, until the first record that is not whole. Only
/// framing and step are read, by a reader of the scorecard's own.
std::vector<int64_t> event_steps(const std::string& bytes, bool& torn) {
  std::vector<int64_t> steps;
  size_t at = 0;
  const auto little = [&](size_t place, size_t count) {
    uint64_t value = 0;
    for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[place + i]);
    return value;
  };
  const auto masked = [](std::string_view part) {
    const uint32_t sum = crc32c(part);
    return ((sum >> 15) | (sum << 17)) + 0xa282ead8u;
  };
  torn = false;
  while (at < bytes.size()) {
    const uint64_t length = bytes.size() - at >= 12 ? little(at, 8) : 0;
    torn = bytes.size() - at < 16 || length > bytes.size() - at - 16 ||
           masked(std::string_view(bytes).substr(at, 8)) != little(at + 8, 4) ||
           masked(std::string_view(bytes).substr(at + 12, length)) != little(at + 12 + length, 4);
    if (torn) break;
    // field 1: double wall time (9 bytes), field 2: varint step
    int64_t step = 0;
    for (size_t place = at + 12 + 10, shift = 0; shift < 64; ++place, shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes[place]);
      step |= static_cast<int64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    steps.push_back(step);
    at += 16 + length;
  }
  return steps;
}

std::vector<std::string_view> whole_lines(const std::string& bytes) {
  std::vector<std::string_view> lines;
  size_t at = 0;
  for (size_t end = bytes.find('\n'); end != std::string::npos; end = bytes.find('\n', at)) {
    lines.push_back(std::string_view(bytes).substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string content(const Path& path) { return io::exists(path) ? io::read(path) : ""; }

/// Steps with a training loss and steps with a validation, in the order of the file.
std::string read_steps(const std::string& bytes, std::vector<int64_t>& trained,
                       std::vector<int64_t>& validated) {
  int64_t number = 0;
  for (const std::string_view line : whole_lines(bytes)) {
    ++number;
    try {
      const Json object = parse_json(line, "metrics.jsonl");
      (object.find("loss") != nullptr ? trained : validated).push_back(object.at("step").integer());
    } catch (const Error& error) {
      return text("metrics.jsonl line ", number, " cannot be read: ", error.what());
    }
  }
  return "";
}

std::string not_rising(const std::vector<int64_t>& steps, const char* what) {
  for (size_t i = 1; i < steps.size(); ++i) {
    if (steps[i] <= steps[i - 1]) return text(what, " has step ", steps[i], " after step ", steps[i - 1]);
  }
  return "";
}

std::vector<int64_t> tensorboard_steps(const Path& run, bool& torn) {
  std::vector<int64_t> all;
  torn = false;
  for (const Path& name : io::list(run / "tb")) {
    if (name.native().front() == '.') continue;  // the temporary of a rewrite
    bool this_torn = false;
    const std::vector<int64_t> steps = event_steps(io::read(run / "tb" / name), this_torn);
    torn = torn || this_torn;
    if (!steps.empty()) all.insert(all.end(), steps.begin() + 1, steps.end());  // the first names the version
  }
  return all;
}

}  // namespace

std::string plant_text(const Scene& scene) {
  const Path path = scene.room / "text.txt";
  if (io::exists(path)) return "text.txt";
  constexpr const char* words[] = {"the",  "old",   "man",  "sees", "a",    "red", "house",
                                   "over", "river", "runs", "slow", "down", "a",   "hill"};
  std::mt19937 generator(7);
  std::string text;
  for (int line = 0; line < 300; ++line) {
    for (int word = 0; word < 8; ++word) text.append(words[generator() % std::size(words)]).append(" ");
    text += '\n';
  }
  io::write(path, text);
  return "text.txt";
}

std::vector<std::string> tiny_train(const Scene& scene, const std::string& name,
                                    const std::vector<std::string>& more) {
  plant_text(scene);
  std::vector<std::string> words{"train",
                                 "lm",
                                 "--data",
                                 "text.txt",
                                 "--name",
                                 name,
                                 "--d-model",
                                 "8",
                                 "--heads",
                                 "2",
                                 "--d-ff",
                                 "16",
                                 "--layers",
                                 "1",
                                 "--max-length",
                                 "16",
                                 "--batch-size",
                                 "4",
                                 "--grad-accumulation",
                                 "2",
                                 "--dropout",
                                 "0.1",
                                 "--warmup-steps",
                                 "10",
                                 "--threads",
                                 "1",
                                 "--steps",
                                 text(tiny_steps),
                                 "--checkpoint-every",
                                 text(tiny_checkpoint),
                                 "--validate-every",
                                 text(tiny_validation),
                                 "--quiet"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<std::string> tiny_resume(const std::string& name, const std::vector<std::string>& more) {
  std::vector<std::string> words{"resume", "runs/" + name, "--quiet", "--threads", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Path run_of(const Scene& scene, const std::string& name) { return scene.room.path() / "runs" / name; }

std::vector<int64_t> checkpoints_of(const Path& run) {
  std::vector<int64_t> steps;
  for (const Path& name : io::list(run / "ckpt")) {
    const std::string& whole = name.native();
    if (!whole.starts_with("step_")) continue;
    int64_t step = -1;
    std::from_chars(whole.data() + 5, whole.data() + whole.size(), step);
    steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

int64_t logged_step(const Path& run) {
  std::vector<int64_t> trained, validated;
  read_steps(content(run / "metrics.jsonl"), trained, validated);
  return trained.empty() ? 0 : trained.back();
}

std::string weights_hash(const Path& run) {
  const std::vector<int64_t> steps = checkpoints_of(run);
  if (steps.empty()) return "none";
  std::string digits = text(steps.back());
  if (digits.size() < 6) digits.insert(0, 6 - digits.size(), '0');
  const Path folder = run / "ckpt" / ("step_" + digits);
  return text(steps.back(), ":", sha256_hex(content(folder / "model.safetensors")), ":",
              sha256_hex(content(folder / "optim.safetensors")));
}

std::vector<std::string> loss_lines(const Path& run) {
  std::vector<std::string> out;
  const std::string bytes = content(run / "metrics.jsonl");
  for (const std::string_view line : whole_lines(bytes)) {
    const size_t speed = line.find(", \"tokens_per_second\"");
    out.emplace_back(line.substr(0, speed));
  }
  return out;
}

std::string finish(const Scene& scene, const std::string& name, const std::vector<std::string>& for_train,
                   const std::vector<std::string>& for_resume) {
  const bool there = io::exists(run_of(scene, name));
  const Ended end =
      run(scene.heed(there ? tiny_resume(name, for_resume) : tiny_train(scene, name, for_train)));
  return end.ok() ? "" : text(there ? "resume: " : "train anew: ", end.said());
}

namespace {

/// GFLOP of a step, as a dry run counts them; infinity where it takes more time or memory than it may.
double step_of(const Scene& scene, const Recipe& recipe) {
  std::vector<std::string> words{"train", recipe.preset, "--dry-run", "--memory", "8G"};
  words.insert(words.end(), recipe.less.begin(), recipe.less.end());
  Command command = scene.heed(words);
  command.seconds = 300;
  const Ended end = run(command);
  if (end.hung || end.code == 7) return INFINITY;
  const size_t unit = end.out.find(" GFLOP");
  if (!end.ok() || unit == std::string::npos) return 0;  // the row itself will show what is wrong
  return std::strtod(end.out.c_str() + end.out.rfind(' ', unit - 1), nullptr);
}

}  // namespace

Recipes recipes(const Scene& scene, const std::set<std::string>& in_short, int64_t short_steps) {
  Recipes out;
  const Ended end = run(scene.heed({"list", "presets"}));
  for (size_t at = 0; at < end.out.size(); at = end.out.find('\n', at) + 1) {
    const size_t begin = end.out.find_first_not_of(' ', at);
    if (begin - at != end.out.find_first_not_of(' ')) continue;  // a folded description goes on
    Recipe recipe{
        .preset = end.out.substr(begin, end.out.find(' ', begin) - begin), .less = {}, .steps = short_steps};
    if (!scene.whole && !in_short.contains(recipe.preset)) continue;
    const Ended shown = run(scene.heed({"show", recipe.preset, "--origin"}));
    const auto has = [&](const char* key) {
      return shown.out.find(text("data.", key, " ")) != std::string::npos;
    };
    const auto take = [&](std::initializer_list<std::string> words) {
      recipe.less.insert(recipe.less.end(), words);
    };
    if (has("bleu_pairs")) {
      take({"--num-examples", "2000", "--validation", "16", "--test-size", "16", "--bleu-pairs", "4"});
    } else if (has("train_fraction")) {
      take({"--data", plant_text(scene)});
    } else if (has("num_examples")) {
      take({"--num-examples", "200", "--validation", "20", "--test-size", "20"});
    }
    if (has("vocabulary")) take({"--vocabulary", "300"});
    if (scene.whole) {
      constexpr double maximum = 1000, budget = 400;  // GFLOP of a step, and of a run
      const double step = step_of(scene, recipe);
      if (step > maximum) {
        out.left_out += text(out.left_out.empty() ? ", left out: " : ", ", recipe.preset);
        continue;
      }
      recipe.steps = static_cast<int64_t>(std::clamp(step > 0 ? budget / step : 20, 2.0, 20.0));
    }
    out.all.push_back(std::move(recipe));
  }
  return out;
}

std::string leftovers(const Scene& scene) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(scene.room / "runs", ignored)) {
    if (entry.path().filename().native().front() == '.')
      return text(entry.path().lexically_relative(scene.room.path()), " was left behind");
  }
  return "";
}

std::string complaint_on_torn_logs(const Path& run) {
  std::vector<int64_t> trained, validated;
  std::string complaint = read_steps(content(run / "metrics.jsonl"), trained, validated);
  if (complaint.empty()) complaint = not_rising(trained, "metrics.jsonl");
  if (complaint.empty()) complaint = not_rising(validated, "metrics.jsonl (validations)");
  bool torn = false;
  const std::vector<int64_t> steps =
      tensorboard_steps(run, torn);  // a torn last record is what a kill may leave
  for (size_t i = 1; complaint.empty() && i < steps.size(); ++i) {
    if (steps[i] < steps[i - 1]) complaint = text("TensorBoard has step ", steps[i], " after ", steps[i - 1]);
  }
  return complaint;
}

std::string complaint_on_logs(const Path& run, int64_t steps) {
  std::string complaint = complaint_on_torn_logs(run);
  if (!complaint.empty()) return complaint;
  const std::string bytes = content(run / "metrics.jsonl");
  if (!bytes.ends_with('\n')) return "metrics.jsonl ends in a torn line";
  std::vector<int64_t> trained, validated;
  read_steps(bytes, trained, validated);
  if (static_cast<int64_t>(trained.size()) != steps || trained.back() != steps) {
    return text("metrics.jsonl has ", trained.size(), " steps up to ", trained.empty() ? 0 : trained.back(),
                ", not ", steps);
  }
  bool torn = false;
  const std::vector<int64_t> events = tensorboard_steps(run, torn);
  if (torn) return "TensorBoard's file has a damaged record";
  std::map<int64_t, int64_t> wanted, found;
  for (const int64_t step : trained) ++wanted[step];
  for (const int64_t step : validated) ++wanted[step];
  for (const int64_t step : events) ++found[step];
  if (wanted != found) {
    return text("TensorBoard has ", events.size(), " records, metrics.jsonl ",
                trained.size() + validated.size());
  }
  return "";
}

Reference reference_run(const Scene& scene, const std::vector<std::string>& more) {
  const Ended end = run(scene.heed(tiny_train(scene, "reference", more)));
  if (!end.ok()) fail(Fault::internal, "the reference run failed: ", end.said());
  const Path folder = run_of(scene, "reference");
  return {.hash = weights_hash(folder), .seconds = end.seconds, .losses = loss_lines(folder)};
}

}  // namespace heed::scorecard
