// File operations while signals interrupt every system call: nothing is lost, doubled or rejected.
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "heed/core/io/files.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

using namespace heed;

namespace {

std::atomic<int64_t> interruptions{0};

/// A timer that interrupts the calls of this thread, and of no thread started meanwhile by `undisturbed`. Its
/// handler does not ask for calls to be taken up again, so they end with EINTR or with a part done.
class Interrupted {
 public:
  Interrupted() {
    struct sigaction action {};
    action.sa_handler = [](int) { ++interruptions; };
    ::sigaction(SIGALRM, &action, &before_);
    interruptions = 0;
    itimerval often{.it_interval = {.tv_sec = 0, .tv_usec = 300}, .it_value = {.tv_sec = 0, .tv_usec = 300}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
  }
  Interrupted(const Interrupted&) = delete;
  Interrupted& operator=(const Interrupted&) = delete;
  ~Interrupted() {
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
};

template <class Work>
std::thread undisturbed(Work work) {
  sigset_t alarm, before;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  ::pthread_sigmask(SIG_BLOCK, &alarm, &before);  // inherited by the thread
  std::thread thread(work);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

std::string many_bytes() {
  std::string bytes(400'000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
  return bytes;
}

void a_moment() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

}  // namespace

TEST_CASE("io: a write that signals interrupt is whole") {
  Scratch scratch;
  const Path pipe = scratch / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const std::string bytes = many_bytes();
  std::string got;
  // The reader is slow, so the pipe is full most of the time: the writer waits in open and in write.
  std::thread reader = undisturbed([&] {
    a_moment();
    const int file = ::open(pipe.c_str(), O_RDONLY);
    char part[9000];
    for (ssize_t count = 1; count > 0; a_moment()) {
      count = ::read(file, part, sizeof part);
      if (count > 0) got.append(part, static_cast<size_t>(count));
    }
    ::close(file);
  });
  {
    Interrupted interrupted;
    io::write(pipe, bytes);
    reader.join();
  }
  CHECK(interruptions > 10);
  CHECK(got == bytes);
}

TEST_CASE("io: a read that signals interrupt is whole") {
  Scratch scratch;
  const Path pipe = scratch / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const std::string bytes = many_bytes();
  std::thread writer = undisturbed([&] {
    a_moment();
    const int file = ::open(pipe.c_str(), O_WRONLY);
    for (size_t at = 0; at < bytes.size(); a_moment()) {
      const ssize_t count = ::write(file, bytes.data() + at, std::min<size_t>(9000, bytes.size() - at));
      if (count <= 0) break;
      at += static_cast<size_t>(count);
    }
    ::close(file);
  });
  std::string got;
  {
    Interrupted interrupted;
    got = io::read_input(pipe);
    writer.join();
  }
  CHECK(interruptions > 10);
  CHECK(got == bytes);
}

TEST_CASE("io: files are written and read while signals arrive") {
  Scratch scratch;
  const std::string bytes = many_bytes();
  Interrupted interrupted;
  for (int i = 0; i < 20; ++i) {
    const Path folder = scratch / std::to_string(i);
    io::make_directories(folder);
    io::write(folder / "file", bytes);
    CHECK(io::read(folder / "file") == bytes);
    io::rename_directory(folder, scratch / "other");
    io::remove_all(scratch / "other");
  }
  CHECK(io::list(scratch.path()).empty());
  CHECK(interruptions > 10);
}

TEST_CASE("io: lines of standard input, interrupted, without an end, and too long") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const int before = ::dup(STDIN_FILENO);
  REQUIRE(::dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
  std::thread writer = undisturbed([&] {
    const auto put = [&](std::string_view part) {
      a_moment();
      while (!part.empty()) {
        const ssize_t count = ::write(ends[1], part.data(), part.size());
        if (count <= 0) return;
        part.remove_prefix(static_cast<size_t>(count));
      }
    };
    put("one\ntw");
    put("o\r\n\nth");
    put("ree\n" + std::string(2 << 20, 'x'));
    ::close(ends[1]);
  });
  std::vector<std::string> lines;
  {
    Interrupted interrupted;
    io::InputLines input;
    for (int i = 0; i < 4; ++i) lines.push_back(*input.next());
    CHECK_THROWS_WITH(input.next(), containing("standard input:5: the line has more than"));
    ::close(ends[0]);
    std::string rest(1 << 16, '\0');
    while (::read(STDIN_FILENO, rest.data(), rest.size()) != 0) {
    }
    writer.join();
    CHECK_FALSE(io::InputLines().next());
  }
  ::dup2(before, STDIN_FILENO);
  ::close(before);
  CHECK(lines == std::vector<std::string>{"one", "two", "", "three"});
}

TEST_CASE("io: a device without an end is refused") {
  if (!io::exists("/dev/zero")) return;
  CHECK(fault_of([&] { io::read_input("/dev/zero"); }) == Fault::data);
  CHECK(fault_of([&] { io::read_input("/dev/zero", 1000); }) == Fault::data);
  CHECK(fault_of([&] { io::read_text("/dev/zero"); }) == Fault::data);
}
