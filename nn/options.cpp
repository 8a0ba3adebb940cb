// Words of options, and the check of integer options against the ranges that fields() declares.
#include "heed/nn/options.h"

#include <algorithm>

#include "heed/core/error.h"

namespace heed {

bool Choice::choose(const std::string& word) const {
  const auto found = std::find(words_.begin(), words_.end(), word);
  if (found == words_.end()) return false;
  set_(static_cast<int>(found - words_.begin()));
  return true;
}

std::vector<std::string> WordSet::words() const {
  std::vector<std::string> out;
  for (const Member& member : members_) out.emplace_back(member.word);
  return out;
}

std::string WordSet::text() const {
  std::string chosen;
  bool all = true;
  for (const Member& member : members_) {
    if (member.is_on) chosen += (chosen.empty() ? "" : ",") + std::string(member.word);
    all = all && member.is_on;
  }
  return all ? "true" : chosen.empty() ? "false" : chosen;
}

std::optional<std::string> WordSet::choose(const std::string& text) const {
  std::vector<bool> chosen(members_.size(), text == "true");
  size_t begin = 0;
  while (text != "true" && text != "false" && begin <= text.size()) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, comma - begin);
    const auto found = std::ranges::find(members_, word, &Member::word);
    if (found == members_.end()) return word;
    chosen[static_cast<size_t>(found - members_.begin())] = true;
    begin = comma + 1;
  }
  for (size_t i = 0; i < members_.size(); ++i) members_[i].is_on = chosen[i];
  return std::nullopt;
}

namespace {

class RangeCheck : public Fields {
 public:
  explicit RangeCheck(std::string prefix) : prefix_(std::move(prefix)) {}

 private:
  void on(const char* name, int64_t& option, IntRange range, const char*) override {
    if (option < range.min || option > range.max)
      fail(prefix_, name, " = ", option, ". It must be ", range.min, " to ", range.max, ".");
  }
  void enter(const char* name) override { prefix_ += std::string(name) + "."; }
  void leave() override {
    prefix_.pop_back();
    prefix_.erase(prefix_.rfind('.') + 1);  // all of it where there is no other dot: npos + 1 is 0
  }

  std::string prefix_;
};

}  // namespace

void detail::check_ranges(const std::function<void(Fields&)>& fields, const std::string& prefix) {
  RangeCheck check(prefix);
  fields(check);
}

}  // namespace heed
