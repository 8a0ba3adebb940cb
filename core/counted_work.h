// How far a long loop is: the loop counts its work, and whoever called it shows that.
#pragma once

#include <functional>
#include <string>

namespace heed {

/// How much of a loop is done.
struct WorkDone {
  double share = 0;         ///< 0 to 1
  double seconds_left = 0;  ///< expected until its end; 0 where nothing is done
  double seconds = 0;       ///< since it began
  std::string part;         ///< what the loop does, where its work has several; may be empty
};

/// While it lives, `show` is called for what CountedWork counts in this thread. Scopes nest: the inner one
/// shows.
class WorkScope {
 public:
  explicit WorkScope(std::function<void(const WorkDone&)> show);  ///< `show` may not be empty
  WorkScope(const WorkScope&) = delete;
  WorkScope& operator=(const WorkScope&) = delete;
  ~WorkScope();

 private:
  friend class CountedWork;
  std::function<void(const WorkDone&)> show_;
  WorkScope* outer_;
  bool is_counted_ = false;  // by a loop, which shows
};

/// Counts the work of a loop, for a WorkScope of this thread; does nothing where there is none. Inside
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
  /// `part`: what it does, where loops of the same scope do other things: "loss".
  explicit CountedWork(double all, std::string part = {});
  CountedWork(const CountedWork&) = delete;
  CountedWork& operator=(const CountedWork&) = delete;
  ~CountedWork();
  void add(double units = 1);  ///< so many more are done

 private:
  WorkScope* scope_ = nullptr;  // null: nobody looks
  double all_, done_ = 0, began_;
  std::string part_;
};

}  // namespace heed
