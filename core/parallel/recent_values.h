// RecentValues: a small cache of values that are computed on demand and shared by threads.
#pragma once

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

namespace heed {

/// A thread-safe cache of the most recently used values, by key. Values are immutable, and live as long as a
/// caller holds them.
template <class Key, class Value>
class RecentValues {
 public:
  /// Keeps at most `max_values` values: a further one replaces the least recently used.
  explicit RecentValues(size_t max_values = 1) : max_values_(max_values) {}

  /// The value kept for `key`, if fits(value) is true; else what make() returns, which is kept. make() runs
  /// without the lock, so two threads may both make the value; all callers get equal ones.
  template <class Fits, class Make>
  std::shared_ptr<const Value> get(const Key& key, const Fits& fits, const Make& make) const {
    if (auto known = find(key, fits)) return known;
    auto made = std::make_shared<const Value>(make());
    const std::lock_guard lock(mutex_);
    std::erase_if(values_, [&](const Entry& entry) { return entry.first == key; });
    values_.emplace_front(key, made);
    if (values_.size() > max_values_) values_.pop_back();
    return made;
  }
  /// The value kept for `key`, or what make() returns, which is kept: for keys whose values always fit.
  template <class Make>
  std::shared_ptr<const Value> get(const Key& key, const Make& make) const {
    return get(
        key, [](const Value&) { return true; }, make);
  }

 private:
  using Entry = std::pair<Key, std::shared_ptr<const Value>>;

  template <class Fits>
  std::shared_ptr<const Value> find(const Key& key, const Fits& fits) const {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(values_.begin(), values_.end(), [&](const Entry& entry) {
      return entry.first == key && fits(*entry.second);
    });
    if (found == values_.end()) return nullptr;
    values_.splice(values_.begin(), values_, found);
    return found->second;
  }

  size_t max_values_;
  mutable std::mutex mutex_;
  mutable std::list<Entry> values_;  // most recently used first
};

}  // namespace heed
