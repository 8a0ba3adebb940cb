// Work of the device kept as a graph and done again, without CUDA's headers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heed/core/memory/storage.h"

namespace heed::cuda {

/// A recorded piece of work.
class Graph {
 public:
  virtual ~Graph() = default;
  /// Queues all of it, with the addresses it was recorded with.
  virtual void launch() = 0;
  /// Lets the thread that recorded it give it up where memory runs out outside of recorded steps.
  virtual void evictable() = 0;
  virtual bool given_up() const = 0;    ///< then it cannot be launched any more
  virtual int64_t kernels() const = 0;  ///< kernels, copies and fills
};

/// While one lives, what this thread asks of the device is recorded instead of done; storage comes from the
/// memory of captured steps. Waiting for the device, reading its numbers and copying from ordinary memory of
/// the host fail meanwhile: CUDA itself would record such a copy, with an address of the host.
class Capture {
 public:
  Capture();
  ~Capture();  ///< forgets what was recorded unless finish() took it
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  /// Fails where something was asked that cannot be recorded.
  std::unique_ptr<Graph> finish();

 private:
  friend void hold(const std::shared_ptr<Storage>& memory);

  CapturedMemory memory_;
  std::vector<std::shared_ptr<Storage>> held_;
  bool open_ = true;
  int64_t launches_;
};

/// Gives up this thread's graphs that can be spared, so that their memory can be given back. True when there
/// were any.
bool give_up_graphs();
/// True while this thread records.
bool capturing();
/// Fails while this thread records: `what` would be decided once and for all, or has another reason.
void refuse_capture(const char* what, const char* why = "is decided on the host, anew in every step");
/// What this thread records, if it does, reads memory that was made before: it stays for as long as the
/// graph.
void hold(const std::shared_ptr<Storage>& memory);

}  // namespace heed::cuda
