// Progress of long loops: a loop counts what it has done, and its caller shows how much that is.
#pragma once

#include <functional>
#include <string>

#include "heed/core/scope.h"

namespace heed {

/// Progress of a loop.
struct WorkDone {
  double share = 0;         ///< share of the loop that is done, 0 to 1
  double seconds_left = 0;  ///< expected seconds until its end; 0 where nothing is done
  double seconds = 0;       ///< seconds since its start
  std::string part;         ///< name of the loop where a scope has several; may be empty
};

/// While it lives, CountedWork of this thread calls `show` with the progress of its loop. Of nested scopes
/// the innermost is called.
class WorkScope : NonCopyable {
 public:
  explicit WorkScope(std::function<void(const WorkDone&)> show);  ///< `show` may not be empty
  ~WorkScope();

 private:
  friend class CountedWork;
  std::function<void(const WorkDone&)> show_;
  WorkScope* outer_;
  bool is_counted_ = false;  // a CountedWork reports to it
};

/// Counts the iterations of a loop and reports them to the WorkScope of this thread, if there is one. Does
/// nothing inside another CountedWork, so that only the outer loop is shown. Example:
///
///   CountedWork work(set.count());
///   for (const Batch& batch : batches) {
///     score(batch);
///     work.add(batch.rows);
///   }
class CountedWork : NonCopyable {
 public:
  /// `all`: number of units of the whole loop, above 0, which take about equal times: examples, tokens,
  /// batches. `part`: names the loop where its scope has several: "loss".
  explicit CountedWork(double all, std::string part = {});
  ~CountedWork();
  void add(double units = 1);  ///< counts units that were done

 private:
  WorkScope* scope_ = nullptr;  // null: no progress is shown
  double all_, done_ = 0, began_;
  std::string part_;
};

}  // namespace heed
