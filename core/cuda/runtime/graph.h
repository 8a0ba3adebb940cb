// CUDA graphs: steps that are captured once and replayed. Needs none of CUDA's headers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heed/core/memory/storage.h"
#include "heed/core/scope.h"

namespace heed::cuda {

/// A captured step.
class Graph {
 public:
  virtual ~Graph() = default;
  /// Replays the step on stream(): it reads and writes the addresses of the capture.
  virtual void launch() = 0;
  /// Lets give_up_graphs() of the capturing thread destroy the graph.
  virtual void evictable() = 0;
  virtual bool given_up() const = 0;    ///< whether give_up_graphs() has destroyed it: it cannot be launched
  virtual int64_t kernels() const = 0;  ///< number of kernels, copies and fills
};

/// While one lives, work that this thread queues is captured instead of computed, and storage comes from the
/// memory of captured steps. Waiting for the device, reading from it and copying from pageable memory of the
/// host fail: CUDA would capture such a copy with its host address.
class Capture : NonCopyable {
 public:
  Capture();
  ~Capture();  ///< discards the captured work unless finish() returned it

  /// Ends the capture. Fails where work was queued that cannot be captured.
  std::unique_ptr<Graph> finish();

 private:
  friend void hold(const std::shared_ptr<Storage>& memory);

  CapturedMemory memory_;
  std::vector<std::shared_ptr<Storage>> held_;
  bool is_open_ = true;  // neither finished nor discarded
  int64_t launches_;     // launches() at the start of the capture
};

/// Destroys the evictable graphs of this thread, so that their memory can be freed. True when there were any.
bool give_up_graphs();
/// True while this thread captures.
bool capturing();
/// Fails while this thread captures. `what` names the call, and `why` completes the sentence with the reason.
void refuse_capture(const char* what, const char* why = "is decided on the host, anew in every step");
/// While this thread captures, keeps older memory that the captured work reads as long as the graph.
void hold(const std::shared_ptr<Storage>& memory);

}  // namespace heed::cuda
