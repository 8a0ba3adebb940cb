// How far work beside the steps is: loops that score, decode or write count it, and whoever calls them shows
// it.
#pragma once

#include <functional>
#include <string>

#include "heed/train/loop/progress.h"

namespace heed {

class CountedWork;

/// While it lives, a Progress shows under this label what CountedWork counts in this thread; its living line
/// is taken away at the end. Scopes nest: the inner one shows.
class ProgressScope {
 public:
  /// The progress must outlive the scope.
  ProgressScope(Progress& progress, std::string label);
  /// `show` takes the place of a Progress: it is called whenever some of the work is done.
  explicit ProgressScope(std::function<void(const Progress::Work&)> show);
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;
  ~ProgressScope();

 private:
  friend class CountedWork;
  Progress* progress_ = nullptr;
  std::function<void(const Progress::Work&)> show_;
  std::string label_;
  ProgressScope* outer_;
  CountedWork* counted_ = nullptr;  // the outermost one, which shows
};

/// Counts the work of a loop, for a ProgressScope of this thread; does nothing where there is none. Inside
/// another one it counts nothing of its own: the outer loop shows. To be used as
///
///   CountedWork work(set.count());
///   for (const Batch& batch : batches) {
///     score(batch);
///     work.add(batch.rows);
///   }
class CountedWork {
 public:
  /// `all`: units of the whole loop, above 0, each of which takes about as long: examples, tokens, batches.
  explicit CountedWork(double all);
  CountedWork(const CountedWork&) = delete;
  CountedWork& operator=(const CountedWork&) = delete;
  ~CountedWork();
  void add(double units = 1);  ///< so many more are done

 private:
  ProgressScope* scope_ = nullptr;  // null: nobody looks
  double all_, done_ = 0, began_;
};

}  // namespace heed
