// CUDA graphs: work of the device that is captured once and replayed, without CUDA's headers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heed/core/memory/storage.h"
#include "heed/core/scope.h"

namespace heed::cuda {

/// Captured work of the device.
class Graph {
 public:
  virtual ~Graph() = default;
  /// Queues the work, with the addresses of the capture.
  virtual void launch() = 0;
  /// Lets give_up_graphs() of the capturing thread destroy the graph.
  virtual void evictable() = 0;
  virtual bool given_up() const = 0;    ///< destroyed by give_up_graphs(): it cannot be launched
  virtual int64_t kernels() const = 0;  ///< kernels, copies and fills
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
  bool open_ = true;
  int64_t launches_;
};

/// Destroys the evictable graphs of this thread, so that their memory can be freed. True when there were any.
bool give_up_graphs();
/// True while this thread captures.
bool capturing();
/// Fails while this thread captures: `what` names the call, `why` the reason, by default that its result
/// would be the same in every replay.
void refuse_capture(const char* what, const char* why = "is decided on the host, anew in every step");
/// While this thread captures, keeps older memory that the captured work reads as long as the graph.
void hold(const std::shared_ptr<Storage>& memory);

}  // namespace heed::cuda
