// Checks integer options against the ranges that fields() declares.
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
