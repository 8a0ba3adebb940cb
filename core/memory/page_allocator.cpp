// Splits and joins blocks of pages, and grows by mappings that follow one another where possible.
#include "heed/core/memory/page_allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

namespace heed {
namespace {

// The preferred address of the first mapping: far from programs, libraries and stacks, so that later mappings
// can follow it without a gap.
char* const first_address = reinterpret_cast<char*>(uintptr_t{1} << 45);
constexpr int64_t huge_page = int64_t{2} << 20;

int64_t rounded_to_huge_pages(int64_t bytes) { return (bytes + huge_page - 1) / huge_page * huge_page; }

char* map(char* hint, int64_t bytes) {
  void* at =
      mmap(hint, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  madvise(at, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return static_cast<char*>(at);
}

bool unmap(char* at, int64_t bytes) { return munmap(at, static_cast<size_t>(bytes)) == 0; }

}  // namespace

const MemorySource& host_memory() {
  static const MemorySource pages{map, unmap, huge_page, true};
  return pages;
}

/// Makes spare list nodes for three blocks: the one to be taken, the remainder of a block that is split, and
/// newly mapped memory.
void Arena::prepare() {
  const size_t enough = static_cast<size_t>(taken_) + 3;
  const size_t max_spares = std::max(enough, spares_.size()) + free_.size();
  if (spares_.capacity() < max_spares) spares_.reserve(2 * max_spares);
  while (spares_.size() < enough) {
    Blocks block{{nullptr, 0}};
    Sizes size{{0, nullptr}};
    spares_.push_back({block.extract(block.begin()), size.extract(size.begin())});
  }
}

void Arena::add(char* block, int64_t bytes) noexcept {
  Spare spare = std::move(spares_.back());
  spares_.pop_back();
  spare.block.key() = block;
  spare.block.mapped() = bytes;
  spare.size.value() = {bytes, block};
  free_.insert(std::move(spare.block));
  sizes_.insert(std::move(spare.size));
}

void Arena::remove(Blocks::iterator block) noexcept {
  auto size = sizes_.extract({block->second, block->first});
  spares_.push_back({free_.extract(block), std::move(size)});
}

/// Adds a mapping of its own, whose last page is never used, so that blocks of two mappings are never joined.
char* Arena::grow_apart(int64_t bytes, int64_t allowance) {
  const int64_t exact = rounded_to_huge_pages(bytes + page);
  for (const int64_t wanted : {std::max(exact, source_->min_bytes), exact}) {
    if (wanted > allowance) continue;
    char* at = source_->map(nullptr, wanted);
    if (at == nullptr) continue;
    reserved_ += wanted;
    whole_[at] = {wanted, ++mapped_};
    ++taken_;
    give(at, wanted - page);
    return at;
  }
  return nullptr;
}

/// Maps memory for a block of this size, at the end of the last mapping if possible. Returns its address;
/// nullptr when memory is out.
char* Arena::grow(int64_t bytes, int64_t allowance) {
  if (!source_->in_pieces) return grow_apart(bytes, allowance);
  // A free block at the end is joined with new memory that follows it.
  const auto last = free_.empty() ? free_.end() : std::prev(free_.end());
  const int64_t tail =
      end_ != nullptr && last != free_.end() && last->first + last->second == end_ ? last->second : 0;
  for (const int64_t wanted :
       {rounded_to_huge_pages(bytes - tail), bytes - tail, rounded_to_huge_pages(bytes), bytes}) {
    if (wanted > allowance) continue;
    char* at = source_->map(end_ != nullptr ? end_ : first_address, wanted);
    if (at == nullptr) continue;
    if (wanted < bytes && at != end_) {
      source_->unmap(at, wanted);
      continue;
    }
    reserved_ += wanted;
    ++mapped_;
    end_ = at + wanted;
    ++taken_;
    give(at, wanted);
    return at;
  }
  return nullptr;
}

void* Arena::take(int64_t bytes, int64_t allowance) {
  prepare();
  auto fit = sizes_.lower_bound({bytes, nullptr});
  if (fit == sizes_.end()) {
    if (grow(bytes, allowance) == nullptr) return nullptr;
    fit = sizes_.lower_bound({bytes, nullptr});
  }
  char* const block = fit->second;
  const int64_t whole = fit->first;
  remove(free_.find(block));
  if (whole > bytes) add(block + bytes, whole - bytes);
  ++taken_;
  return block;
}

void Arena::give(void* returned, int64_t bytes) noexcept {
  --taken_;
  char* block = static_cast<char*>(returned);
  auto next = free_.lower_bound(block);
  if (next != free_.end() && block + bytes == next->first) {
    bytes += next->second;
    const auto joined = next++;
    remove(joined);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == block) {
      block = previous->first;
      bytes += previous->second;
      remove(previous);
    }
  }
  add(block, bytes);
}

/// Unmaps the mappings that are one free block, except the first `kept`. Returns the number of bytes.
int64_t Arena::release_whole_mappings(int64_t kept) {
  int64_t released = 0;
  std::erase_if(whole_, [&](const auto& entry) {
    const auto& [begin, mapping] = entry;
    const auto block = free_.find(begin);
    if (mapping.number <= kept || block == free_.end() || block->second != mapping.bytes - page ||
        !source_->unmap(begin, mapping.bytes))
      return false;
    remove(block);
    released += mapping.bytes;
    return true;
  });
  reserved_ -= released;
  return released;
}

int64_t Arena::release(int64_t kept) {
  if (!source_->in_pieces) return release_whole_mappings(kept);
  int64_t released = 0;
  for (auto next = free_.begin(); next != free_.end();) {
    const auto block = next++;
    if (!source_->unmap(block->first, block->second)) continue;
    released += block->second;
    if (block->first + block->second == end_) end_ = block->first;
    remove(block);
  }
  reserved_ -= released;
  return released;
}

}  // namespace heed
