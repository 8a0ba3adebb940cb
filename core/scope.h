// Building blocks of scopes: objects that change something while they live.
#pragma once

#include <utility>

namespace heed {

/// Base of classes that are neither copied nor moved.
struct NonCopyable {
  NonCopyable() = default;                              ///< nothing to initialise
  NonCopyable(const NonCopyable&) = delete;             ///< not copied
  NonCopyable& operator=(const NonCopyable&) = delete;  ///< not assigned
};

/// Gives a variable another value while it lives, then restores the previous one.
template <class T, class Variable = T>
class ScopedValue : NonCopyable {
 public:
  /// Sets `variable`, which must outlive this object, to `value`.
  ScopedValue(Variable& variable, T value) : variable_(variable), previous_(variable) {
    variable_ = std::move(value);
  }
  ~ScopedValue() { variable_ = std::move(previous_); }

 private:
  Variable& variable_;
  T previous_;
};

/// Calls a function, which must not throw, at the end of a scope.
template <class F>
class AtScopeEnd : NonCopyable {
 public:
  explicit AtScopeEnd(F function)
      : function_(std::move(function)) {}  ///< `function` is called without arguments
  ~AtScopeEnd() { function_(); }

 private:
  F function_;
};

}  // namespace heed
