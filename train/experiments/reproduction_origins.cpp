// Where the runs of a table come from: program, commit, machine and date of each, for its page.
#include <algorithm>

#include "heed/train/experiments/reproduction_parts.h"

namespace heed {
namespace {

constexpr const char* origin_metadata[] = {"heed", "commit", "machine", "date"};
constexpr size_t day_length = 10;  // of 2026-11-24T19:05:48Z

/// The headers of the curves of a cell's runs: those that have begun here, and those on file.
std::vector<Facts> headers_of(const PublishedTable& table, const ReproductionOptions& options,
                              const Work& work) {
  std::vector<Facts> out;
  for (const PlannedRun& plan : work.plans) {
    const auto facts = curve_facts(table, options, work, plan);
    const Facts header(facts.begin(), facts.end());
    if (header.contains("commit") && !is_filed(work, plan.seed)) out.push_back(header);
  }
  for (const auto* runs : {&work.filed, &work.begun}) {
    for (const FiledRun& one : *runs) out.push_back(one.facts);
  }
  return out;
}

/// The values of a fact, each once; a date without its time.
std::vector<std::string> values_of(const std::vector<Facts>& headers, const std::string& name) {
  std::vector<std::string> out;
  for (const Facts& header : headers) {
    const auto found = header.find(name);
    std::string value = found == header.end() ? "unknown" : found->second;
    if (name == "date") value = value.substr(0, day_length);
    if (std::find(out.begin(), out.end(), value) == out.end()) out.push_back(value);
  }
  return out;
}

}  // namespace

bool is_filed(const Work& work, int64_t seed) {
  return std::any_of(work.filed.begin(), work.filed.end(),
                     [&](const FiledRun& one) { return one.run.seed == seed; });
}

Origins origins_of(const PublishedTable& table, const ReproductionOptions& options,
                   const std::vector<Work>& all) {
  std::map<std::string, std::vector<Facts>> headers;  // by cell
  std::vector<Facts> of_all;
  for (const Work& work : all) {
    const std::vector<Facts> own = headers_of(table, options, work);
    if (own.empty()) continue;
    headers[work.cell.name] = own;
    of_all.insert(of_all.end(), own.begin(), own.end());
  }
  Origins out;
  for (const char* name : origin_metadata) {
    const std::vector<std::string> values = values_of(of_all, name);
    if (values.size() == 1) out.shared += wrapped(text("- ", name, ": ", markdown_escaped(values[0])), "  ");
    if (values.size() < 2) continue;
    for (const auto& [cell, own] : headers) {
      std::string words;
      for (const std::string& value : values_of(own, name)) words += (words.empty() ? "" : " and ") + value;
      std::string& note = out.own[cell];
      note += text(note.empty() ? "" : ", ", name, " ", words);
    }
  }
  return out;
}

}  // namespace heed
