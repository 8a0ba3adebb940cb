// Collective operations built from all_to_all(), all_gather() and broadcast() of the transport.
#include "heed/core/distributed/process_group.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "heed/core/ceil_div.h"
#include "heed/core/memory/heap_cap.h"

namespace heed {
namespace {

/// Bytes of a cache line: pieces that members add up begin at its multiples.
constexpr int64_t cache_line = 64;

/// sum [count] = the sum over members of pieces [members, count], in the order of the members.
template <class T>
void add_pieces(const std::byte* pieces, int64_t members, int64_t count, std::byte* sum) {
  const T* piece = reinterpret_cast<const T*>(pieces);
  T* out = reinterpret_cast<T*>(sum);
  std::copy(piece, piece + count, out);
  for (int64_t member = 1; member < members; ++member) {
    piece += count;
    for (int64_t i = 0; i < count; ++i) out[i] += piece[i];
  }
}

/// An error as bytes for the other members: its Fault, then its text.
std::string encoded(Fault fault, const std::string& message) {
  return std::string(1, static_cast<char>(fault)) + message;
}

std::string host_name() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return host;
}

}  // namespace

std::string ProcessGroup::broadcast(const std::string& bytes) {
  int64_t count = static_cast<int64_t>(bytes.size());
  broadcast(&count, sizeof count);
  std::string out = is_main() ? bytes : std::string(static_cast<size_t>(count), '\0');
  if (count > 0) broadcast(out.data(), count);
  return out;
}

std::vector<std::string> ProcessGroup::all_gather(const std::string& bytes) {
  const auto members = static_cast<size_t>(size_);
  const int64_t count = static_cast<int64_t>(bytes.size());
  std::vector<int64_t> counts(members);
  all_gather(&count, counts.data(), sizeof count);
  const int64_t max_count = *std::max_element(counts.begin(), counts.end());
  std::vector<std::string> out(members);
  if (max_count == 0) return out;
  std::string padded = bytes, all(members * static_cast<size_t>(max_count), '\0');
  padded.resize(static_cast<size_t>(max_count));
  all_gather(padded.data(), all.data(), max_count);
  for (size_t i = 0; i < members; ++i)
    out[i] = all.substr(i * static_cast<size_t>(max_count), static_cast<size_t>(counts[i]));
  return out;
}

std::vector<double> ProcessGroup::all_gather(double number) {
  std::vector<double> out(static_cast<size_t>(size_));
  all_gather(&number, out.data(), sizeof number);
  return out;
}

void ProcessGroup::sum(const Tensor& x, std::vector<std::byte>& scratch) {
  if (x.device() != Device::cpu || !x.contiguous() || (x.dtype() != DType::f32 && x.dtype() != DType::f64)) {
    fail(Fault::internal, "group: sum of ", x.dtype(), " ", x.shape(), " on ", x.device(),
         ". It takes contiguous f32 and f64 on the CPU.");
  }
  if (size_ == 1 || x.size() == 0) return;
  // Reduce-scatter and all-gather: member i adds piece i of all members, in their order, and sends it to all.
  const int64_t piece = ceil_div(x.bytes(), size_ * cache_line) * cache_line;
  const int64_t all = piece * size_;
  scratch.resize(static_cast<size_t>(2 * all + piece));
  std::byte *padded = scratch.data(), *pieces = padded + all, *own_piece = pieces + all;
  std::memcpy(padded, x.raw(), static_cast<size_t>(x.bytes()));
  std::memset(padded + x.bytes(), 0, static_cast<size_t>(all - x.bytes()));
  all_to_all(padded, pieces, piece);
  if (x.dtype() == DType::f32)
    add_pieces<float>(pieces, size_, piece / 4, own_piece);
  else
    add_pieces<double>(pieces, size_, piece / 8, own_piece);
  all_gather(own_piece, padded, piece);
  std::memcpy(x.raw(), padded, static_cast<size_t>(x.bytes()));
}

void ProcessGroup::together(const std::function<void()>& work) {
  if (size_ == 1) return work();
  std::string error_bytes;
  try {
    work();
  } catch (const Error& error) {
    error_bytes = encoded(error.fault(), error.what());
  } catch (const std::bad_alloc& error) {
    error_bytes = encoded(Fault::memory, out_of_memory_text(error));
  }
  const std::vector<std::string> all = all_gather(error_bytes);
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].empty()) continue;
    const std::string member = i == 0 ? "" : text("process ", i + 1, " of ", size_, ": ");
    throw CollectiveError(static_cast<Fault>(all[i][0]), member + all[i].substr(1));
  }
}

void ProcessGroup::together_on_main(const std::function<void()>& work) {
  together([&] {
    if (is_main()) work();
  });
}

LocalRanks local_ranks(ProcessGroup& group) {
  const std::string host = host_name();
  LocalRanks out{.place = 0, .count = 0};
  const std::vector<std::string> hosts = group.all_gather(host);
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i] != host) continue;
    ++out.count;
    if (static_cast<int64_t>(i) < group.rank()) ++out.place;
  }
  return out;
}

std::string first_message(ProcessGroup& group, const std::string& message) {
  const std::vector<std::string> all = group.all_gather(message),
                                 names = group.all_gather(describe_rank(group));
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].empty()) return text(names[i], ": ", all[i]);
  }
  return {};
}

std::string describe_rank(const ProcessGroup& group) {
  return text("process ", group.rank() + 1, " of ", group.size(), " on ", host_name());
}

}  // namespace heed
