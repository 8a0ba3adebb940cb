// A group of processes that train together, and its collective operations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heed/core/error.h"
#include "heed/core/scope.h"
#include "heed/core/tensor.h"

namespace heed {

/// An Error that all members of a group throw at the same place with the same text, so that one member prints
/// it and all exit.
class CollectiveError : public Error {
 public:
  using Error::Error;  ///< a Fault and the text that all members throw
};

/// Processes that work together. Its operations are collective: all members make the same calls in the same
/// order, each from one thread at a time, and a call blocks, without spinning, until all have made it.
class ProcessGroup : NonCopyable {
 public:
  /// Member `rank` of `size`, 0 <= rank < size.
  ProcessGroup(int64_t rank, int64_t size) : rank_(rank), size_(size) {}
  virtual ~ProcessGroup() = default;

  int64_t rank() const { return rank_; }       ///< number of this member, from 0
  int64_t size() const { return size_; }       ///< number of members
  bool is_main() const { return rank_ == 0; }  ///< member 0 writes files and prints

  /// Sends piece i of `from` to member i; `to` receives `bytes` bytes from each member, in their order.
  virtual void all_to_all(const void* from, void* to, int64_t bytes) = 0;
  /// `to` receives the `bytes` bytes of each member, in their order.
  virtual void all_gather(const void* from, void* to, int64_t bytes) = 0;
  /// Copies the bytes of member 0 to all members.
  virtual void broadcast(void* data, int64_t bytes) = 0;
  /// Aborts all members; called by one that cannot continue.
  [[noreturn]] virtual void abandon(int code) = 0;

  /// Returns what member 0 passes.
  std::string broadcast(const std::string& bytes);
  /// Returns what each member passes, in their order.
  std::vector<std::string> all_gather(const std::string& bytes);
  std::vector<double> all_gather(double number);  ///< one number of each member, in their order

  /// Sums x (contiguous, f32 or f64, on the CPU) over all members, in their order: bit-identical on all
  /// members and for any transport. The caller keeps `scratch` between calls.
  void sum(const Tensor& x, std::vector<std::byte>& scratch);

  /// Runs `work` and waits for the other members. If it fails for any member, all throw the error of the
  /// first as CollectiveError. A group of one throws what `work` throws.
  void together(const std::function<void()>& work);
  /// together() for work of member 0 alone.
  void together_on_main(const std::function<void()>& work);

 private:
  int64_t rank_, size_;
};

/// The members on this machine.
struct LocalRanks {
  int64_t place = 0;  ///< number of members on this machine with a lower rank
  int64_t count = 1;  ///< number of members on this machine
};
/// Counts members with this one's host name. Collective: every member calls it.
LocalRanks local_ranks(ProcessGroup& group);

/// "MEMBER: MESSAGE" for the first message that is not empty, by rank; empty where all messages are.
/// Collective: every member calls it with its own message.
std::string first_message(ProcessGroup& group, const std::string& message);

/// "process 2 of 4 on HOST", with processes counted from 1, for messages.
std::string describe_rank(const ProcessGroup& group);

/// Sums tensors over a group in the background.
class AllReduce {
 public:
  virtual ~AllReduce() = default;
  /// Starts the in-place sum of a contiguous tensor, which must not be used until finish(). All members start
  /// the same tensors in the same order.
  virtual void start(const Tensor& x) = 0;
  /// Waits until all started tensors hold their sums; on a device, orders later work after them.
  virtual void finish() = 0;
};

/// AllReduce by a thread of the CPU, for tensors of the CPU, or by NCCL on a device. Without NCCL the sums go
/// through the host in finish(), and `say` receives the reason. In a group of one it does nothing.
std::unique_ptr<AllReduce> make_all_reduce(ProcessGroup& group, Device device,
                                           const std::function<void(const std::string&)>& say);

}  // namespace heed
