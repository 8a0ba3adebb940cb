// The scorecard: tests the program heed from outside and prints a table of results.
#include <charconv>
#include <cstdio>
#include <string_view>

#include "heed/core/io/json.h"
#include "heed/tests/scorecard/scorecard.h"
#include "heed/tests/source_paths.h"

namespace heed::scorecard {
namespace {

constexpr const char* usage =
    "scorecard [IDS] [--long] [--json] [--hours H] [--seed N] [--heed PROGRAM] [--list]\n"
    "  IDS      rows to run, as in L1,L2 or L for all that begin so; none: all\n"
    "  --long   as often and as long as the table says, not the short form of ./heed test\n"
    "  --json   one object a row on standard output; the table goes to standard error\n"
    "  --hours  of the soak M2, instead of its number of steps\n";

struct Wishes {
  std::vector<std::string> ids;
  bool whole = false, json = false, list = false;
  double hours = 0;
  int64_t seed = 1;
  Path program = heed::program();
};

double number(std::string_view name, std::string_view value) {
  double out = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (error != std::errc() || end != value.data() + value.size() || out < 0) {
    fail(name, " '", value, "' is not a number.");
  }
  return out;
}

Wishes wishes_of(int count, char** arguments) {
  Wishes wishes;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = arguments[i];
    const auto next = [&]() -> std::string_view {
      if (++i == count) fail(word, " needs a value.\n", usage);
      return arguments[i];
    };
    const auto add_ids = [&](std::string_view list) {
      while (!list.empty()) {
        const std::string_view id = list.substr(0, list.find(','));
        list.remove_prefix(std::min(list.size(), id.size() + 1));
        bool known = false;
        for (const Row& row : rows()) known = known || std::string_view(row.id).starts_with(id);
        if (!known) fail("there is no row '", id, "'. --list names them.");
        wishes.ids.emplace_back(id);
      }
    };
    if (word == "--long")
      wishes.whole = true;
    else if (word == "--json")
      wishes.json = true;
    else if (word == "--list")
      wishes.list = true;
    else if (word == "--hours")
      wishes.hours = number(word, next());
    else if (word == "--seed")
      wishes.seed = static_cast<int64_t>(number(word, next()));
    else if (word == "--heed")
      wishes.program = std::filesystem::absolute(next());
    else if (word == "--only")
      add_ids(next());
    else if (!word.starts_with("-"))
      add_ids(word);
    else
      fail("option ", word, " is unknown.\n", usage);
  }
  return wishes;
}

bool wanted(const Wishes& wishes, std::string_view id) {
  if (wishes.ids.empty()) return true;
  for (const std::string& one : wishes.ids) {
    // L1 is not L10, but L is all of them
    const bool whole_id = !one.empty() && one.back() >= '0' && one.back() <= '9';
    if (whole_id ? id == one : id.starts_with(one)) return true;
  }
  return false;
}

const char* word(Verdict verdict) {
  return verdict == Verdict::ok ? "ok" : verdict == Verdict::miss ? "MISS" : "skip";
}

Result measured(const Row& row, const Wishes& wishes, double& seconds) {
  const double began = now();
  Result result;
  try {
    const Room room;
    result = row.run({.program = wishes.program,
                      .build = wishes.program.parent_path(),
                      .source = source_folder(),
                      .room = room,
                      .whole = wishes.whole,
                      .hours = wishes.hours,
                      .seed = static_cast<uint64_t>(wishes.seed)});
  } catch (const std::exception& error) {
    result = {.verdict = Verdict::miss, .reached = "the row itself failed", .notes = {error.what()}};
  }
  seconds = now() - began;
  return result;
}

/// A cell of the table: one line, and no bar that would end it.
std::string cell(std::string text) {
  for (char& letter : text) letter = letter == '|' ? '/' : letter == '\n' ? ' ' : letter;
  return text;
}

int scorecard(int count, char** arguments) {
  const Wishes wishes = wishes_of(count, arguments);
  if (wishes.list) {
    for (const Row& row : rows()) std::printf("%-3s %s: %s\n", row.id, row.measure, row.hold);
    return 0;
  }
  FILE* table = wishes.json ? stderr : stdout;
  std::fprintf(table, "| row | | measure | hold | reached | time |\n|---|---|---|---|---|---|\n");
  int ok = 0, missed = 0, skipped = 0;
  std::vector<std::string> notes;
  for (const Row& row : rows()) {
    if (!wanted(wishes, row.id)) continue;
    double seconds = 0;
    const Result result = measured(row, wishes, seconds);
    ++(result.verdict == Verdict::ok ? ok : result.verdict == Verdict::miss ? missed : skipped);
    std::fprintf(table, "| %s | %s | %s | %s | %s | %.1f s |\n", row.id, word(result.verdict),
                 cell(row.measure).c_str(), cell(row.hold).c_str(), cell(result.reached).c_str(), seconds);
    std::fflush(table);
    for (const std::string& note : result.notes) notes.push_back(text(row.id, ": ", note));
    if (!wishes.json) continue;
    Json list = Json::List();
    for (const std::string& note : result.notes) list.push(note);
    const Json line = Json::object({{"row", row.id},
                                    {"verdict", word(result.verdict)},
                                    {"measure", row.measure},
                                    {"hold", row.hold},
                                    {"reached", result.reached},
                                    {"seconds", seconds},
                                    {"notes", list}});
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
  }
  if (ok + missed + skipped > 1) {
    std::fprintf(table, "\n%d ok, %d missed, %d skipped\n", ok, missed, skipped);
  }
  for (const std::string& note : notes) std::fprintf(table, "%s\n", note.c_str());
  if (missed > 0) return 1;
  return ok == 0 && skipped > 0 ? 77 : 0;  // what ctest takes for skipped
}

}  // namespace

Result skip(std::string why) { return {.verdict = Verdict::skip, .reached = std::move(why), .notes = {}}; }

Command Scene::heed(std::vector<std::string> words) const {
  words.insert(words.begin(), program.string());
  return {.words = std::move(words), .folder = room.path()};
}

Command Scene::heed_with_fault(const std::string& fault, std::vector<std::string> words) const {
  words.insert(words.begin(), {program_with_faults().string(), fault});
  return {.words = std::move(words), .folder = room.path()};
}

void Tally::add(const std::string& what, const std::string& complaint) {
  ++cases_;
  if (complaint.empty()) {
    ++good_;
  } else if (notes_.size() < 12) {
    notes_.push_back(what + ": " + complaint);
  }
}

void Tally::fault(std::string what) {
  ++faults_;
  if (notes_.size() < 12) notes_.push_back(std::move(what));
}

Result Tally::result(const std::string& behind) const {
  const bool holds = good_ == cases_ && faults_ == 0 && cases_ > 0;
  return {.verdict = holds ? Verdict::ok : Verdict::miss,
          .reached = text(good_, "/", cases_, behind),
          .notes = notes_};
}

}  // namespace heed::scorecard

int main(int count, char** arguments) {
  try {
    return heed::scorecard::scorecard(count, arguments);
  } catch (const heed::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
