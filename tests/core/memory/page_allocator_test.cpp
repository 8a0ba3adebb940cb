// Splitting and joining of blocks, against a plain list of allocations.
#include "heed/core/memory/page_allocator.h"

#include <sys/mman.h>

#include <cstring>
#include <random>

#include "heed/tests/catch.h"

using namespace heed;

namespace {

constexpr int64_t page = Arena::page;
constexpr int64_t plenty = int64_t{1} << 40;

/// Pages that always follow the wish. The system may place a mapping elsewhere, beside another one of this
/// process, and then two pieces cannot be joined; these addresses are set aside for the test.
struct SetAside {
  static constexpr int64_t bytes = int64_t{1} << 30;
  static inline char* begin = nullptr;

  SetAside() {
    void* at = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(at != MAP_FAILED);
    begin = static_cast<char*>(at);
  }
  ~SetAside() { munmap(begin, bytes); }

  /// The first wish names an address of the arena's own choice: it gets the beginning.
  static char* map(char* wish, int64_t size) {
    char* at = wish >= begin && wish < begin + bytes ? wish : begin;
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    void* got = mmap(at, static_cast<size_t>(size), PROT_READ | PROT_WRITE, how, -1, 0);
    return got == MAP_FAILED ? nullptr : static_cast<char*>(got);
  }
  static bool unmap(char* at, int64_t size) {
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    return mmap(at, static_cast<size_t>(size), PROT_NONE, how, -1, 0) != MAP_FAILED;
  }
  const MemorySource source{map, unmap, host_memory().min_bytes, true};
};

}  // namespace

TEST_CASE("arena: blocks given back are joined and serve larger ones") {
  const SetAside addresses;
  Arena arena(addresses.source);
  std::vector<void*> parts;
  for (int i = 0; i < 64; ++i) parts.push_back(arena.take(16 * page, plenty));
  const int64_t reserved = arena.reserved(), mapped = arena.mapped();
  CHECK(reserved >= 64 * 16 * page);
  // Every second one leaves holes of 16 pages; with their neighbours they are one block.
  for (size_t i = 0; i < parts.size(); i += 2) arena.give(parts[i], 16 * page);
  for (size_t i = 1; i < parts.size(); i += 2) arena.give(parts[i], 16 * page);
  void* whole = arena.take(64 * 16 * page, plenty);
  CHECK(arena.reserved() == reserved);
  CHECK(arena.mapped() == mapped);
  std::memset(whole, 1, 64 * 16 * page);
  arena.give(whole, 64 * 16 * page);
  CHECK(arena.release() == reserved);
  CHECK(arena.reserved() == 0);
}

TEST_CASE("arena: what is free at the end counts when it grows") {
  const SetAside addresses;
  Arena arena(addresses.source);
  void* first = arena.take(100 * page, plenty);
  const int64_t before = arena.reserved();
  void* second = arena.take(before - 50 * page, plenty);
  CHECK(arena.reserved() <= 2 * before);
  arena.give(first, 100 * page);
  arena.give(second, before - 50 * page);
  arena.release();
}

TEST_CASE("arena: no more than the allowance is asked for") {
  Arena arena;
  CHECK(arena.take(page, 0) == nullptr);
  CHECK(arena.take(1000 * page, 999 * page) == nullptr);
  CHECK(arena.reserved() == 0);
  CHECK(arena.take(int64_t{1} << 60, plenty << 21) == nullptr);  // more than there are addresses
  void* block = arena.take(page, plenty);
  REQUIRE(block != nullptr);
  CHECK(arena.take(arena.reserved(), 0) == nullptr);
  arena.give(block, page);
  arena.release();
}

TEST_CASE("arena: blocks never overlap, and in the end all is one") {
  Arena arena;
  std::mt19937 random(7);
  std::vector<std::pair<char*, int64_t>> out;
  int64_t live = 0, peak = 0;
  for (int i = 0; i < 4000; ++i) {
    if (out.empty() || random() % 5 < (live < 4000 * page ? 3 : 1)) {
      const int64_t bytes = static_cast<int64_t>(1 + random() % 200) * page;
      auto* block = static_cast<char*>(arena.take(bytes, plenty));
      for (const auto& [other, size] : out) {
        if (block < other + size && other < block + bytes) FAIL("two blocks share memory");
      }
      block[0] = block[bytes - 1] = 1;
      out.emplace_back(block, bytes);
      live += bytes;
      peak = std::max(peak, live);
    } else {
      std::swap(out[random() % out.size()], out.back());
      arena.give(out.back().first, out.back().second);
      live -= out.back().second;
      out.pop_back();
    }
  }
  CHECK(arena.reserved() < peak * 3 / 2);
  for (const auto& [block, bytes] : out) arena.give(block, bytes);
  const int64_t reserved = arena.reserved();
  CHECK(arena.release() == reserved);
}
