// Processes that compute one thing together.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/tensor.h"

namespace heed {

/// An Error that every member of a group throws at the same place with the same words: one of them says it,
/// and all end in order.
class Agreed : public Error {
 public:
  using Error::Error;
};

/// Members, numbered from 0 on, that make the same calls in the same order, each from one thread at a time.
/// Every call waits until the others have made theirs, and leaves the processor to others meanwhile.
class Group {
 public:
  Group(int64_t rank, int64_t size) : rank_(rank), size_(size) {}
  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int64_t rank() const { return rank_; }
  int64_t size() const { return size_; }
  bool leads() const { return rank_ == 0; }

  /// Piece i of `from` goes to member i; `to` gets a piece of `bytes` bytes from each member, in their order.
  virtual void trade(const void* from, void* to, int64_t bytes) = 0;
  /// `to` gets the `bytes` bytes of each member, in their order.
  virtual void gather(const void* from, void* to, int64_t bytes) = 0;
  /// Everybody gets the bytes of member 0.
  virtual void spread(void* data, int64_t bytes) = 0;
  /// Ends all members at once, for one that cannot go on.
  [[noreturn]] virtual void abandon(int code) = 0;

  /// Everybody gets what member 0 gives.
  std::string spread(const std::string& bytes);
  /// What each gives, in the order of the members.
  std::vector<std::string> gather(const std::string& bytes);
  std::vector<double> gather(double number);

  /// Adds x (contiguous, f32 or f64, on the CPU) up over all members, in the order of the members: the same
  /// bits for everybody, whatever carries the messages. `room` is kept by the caller from one call to the
  /// next.
  void sum(const Tensor& x, std::vector<std::byte>& room);

  /// Does `work` here, and waits for the others to have done theirs. Where it fails for somebody, everybody
  /// throws what the first of them said, as Agreed.
  void together(const std::function<void()>& work);

 private:
  int64_t rank_, size_;
};

/// Group::together(), or the work alone where there is no group.
void together(Group* group, const std::function<void()>& work);

/// Members that share this one's machine.
struct Neighbours {
  int64_t place = 0;  ///< this one's number among them
  int64_t count = 1;  ///< this one included
};
Neighbours neighbours(Group& group);

/// "process 2 of 4 on HOST", with processes counted from 1, for messages.
std::string name_of_member(const Group& group);

/// Tensors added up over a group while the caller goes on.
class Sums {
 public:
  virtual ~Sums() = default;
  /// In place, contiguous; not to be touched until finish(). Everybody starts the same ones in the same
  /// order.
  virtual void start(const Tensor& x) = 0;
  /// Afterwards all that was started holds its sum; on a device, as far as its later work can see.
  virtual void finish() = 0;
};

/// On the CPU, a thread of its own sends and adds. On a device NCCL does, where there is one; else it goes by
/// way of the host, at finish(), and `say` hears why.
std::unique_ptr<Sums> sums_over(Group& group, Device device,
                                const std::function<void(const std::string&)>& say);

}  // namespace heed
