// Rows S1-S3: signals, and concurrent starts.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "heed/core/io/files.h"
#include "heed/core/io/hash.h"
#include "heed/tests/scorecard/rows.h"
#include "heed/tests/scorecard/tiny_runs.h"

namespace heed::scorecard {
namespace {

/// Sends a signal at a random moment; what is wrong with how the run takes it.
std::string stopped_once(const Scene& scene, const Reference& reference, int number, double delay,
                         double& longest) {
  const std::string name = text("stopped", number);
  const Path run = run_of(scene, name);
  io::remove_all(run);
  Process process(scene.heed(tiny_train(scene, name)));
  sleep_for(delay);
  const double sent = now();
  process.signal(number);
  const bool soon = process.wait_for(2 + 0.1);
  longest = std::max(longest, now() - sent);
  if (!soon) return "still running 2 s after the signal";
  const Ended end = process.wait();
  if (end.ok())
    return weights_hash(run) == reference.hash ? "" : "it ended before the signal with other weights";
  if (end.code != 128 + number) return "the code is wrong: " + end.said();
  std::string wrong = complaint_on_torn_logs(run);
  if (wrong.empty()) wrong = finish(scene, name);
  if (wrong.empty() && weights_hash(run) != reference.hash) wrong = "it ends with other weights";
  if (wrong.empty()) wrong = complaint_on_logs(run, tiny_steps);
  return wrong;
}

constexpr const char* between_steps = "the first signal came between two steps";

/// Two signals within one long step; what is wrong with how soon the second ends it.
std::string stopped_in_step(const Scene& scene, int number, double delay, double& longest) {
  const std::string name = "long";
  io::remove_all(run_of(scene, name));
  // A batch whose step takes seconds.
  Process process(scene.heed(tiny_train(scene, name,
                                        {"--batch-size", "32", "--max-length", "128", "--d-model", "128",
                                         "--layers", "2", "--grad-accumulation", "400"})));
  const double began = now();
  while (process.running() && !io::exists(run_of(scene, name) / "manifest.json") && now() < began + 60) {
    sleep_for(0.005);
  }
  sleep_for(delay);
  process.signal(number);
  if (process.wait_for(0.3)) return process.wait().code == 128 + number ? between_steps : "the code is wrong";
  const double sent = now();
  process.signal(number);
  const bool ended = process.wait_for(10);
  longest = std::max(longest, now() - sent);
  if (!ended) return "the second signal does not end it";
  const Ended end = process.wait();
  return end.code == 128 + number ? "" : "the code is wrong: " + end.said();
}

/// Stops a run at several moments: before the first step a run ends at the first signal.
std::string stopped_at_once(const Scene& scene, int number, double& longest) {
  std::string wrong = between_steps;
  for (const double delay : {0.5, 1.0, 2.0, 4.0}) {
    if (wrong == between_steps) wrong = stopped_in_step(scene, number, delay, longest);
  }
  return wrong;
}

/// What is wrong with eight that start at once: one may run, the others say code 6 and whose run it is.
std::string only_one_runs(const Scene& scene, const std::vector<std::string>& words) {
  std::vector<Process> all;
  for (int i = 0; i < 8; ++i) all.emplace_back(scene.heed(words));
  std::string wrong;
  size_t ended = 0;
  const double until = now() + 20;
  while (ended < 7 && now() < until) {
    ended = 0;
    for (Process& one : all) ended += one.running() ? 0 : 1;
    sleep_for(0.005);
  }
  Process* winner = nullptr;
  for (Process& one : all) {
    if (one.running()) winner = &one;
  }
  if (winner == nullptr || ended != 7) wrong = text(ended, " of 8 ended at once, not 7");
  if (winner != nullptr) winner->signal(SIGKILL);
  for (Process& one : all) {
    if (&one == winner) continue;
    const Ended end = one.wait();
    if (wrong.empty() && end.code != 6) wrong = "not code 6: " + end.said();
    if (wrong.empty() && end.err.find(text("pid ", winner->id(), " ")) == std::string::npos) {
      wrong = text("does not name pid ", winner->id(), ": ", end.said());
    }
  }
  if (winner != nullptr) winner->wait();
  return wrong;
}

std::string little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

uint32_t crc32(std::string_view bytes) {
  uint32_t sum = ~0u;
  for (const char letter : bytes) {
    sum ^= static_cast<unsigned char>(letter);
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0u);
  }
  return ~sum;
}

/// An archive of files as they are.
std::string zip(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string out, index;
  for (const auto& [name, bytes] : files) {
    const std::string facts = little(20, 2) + little(0, 8) + little(crc32(bytes), 4) +
                              little(bytes.size(), 4) + little(bytes.size(), 4) + little(name.size(), 2) +
                              little(0, 2);
    index += "PK\1\2" + little(20, 2) + facts + little(0, 6) + little(0, 4) + little(out.size(), 4) + name;
    out += "PK\3\4" + facts + name + bytes;
  }
  const uint64_t count = files.size();
  return out + index + "PK\5\6" + little(0, 4) + little(count, 2) + little(count, 2) +
         little(index.size(), 4) + little(out.size(), 4) + little(0, 2);
}

/// Answers every request on 127.0.0.1 with the same bytes, slowly, and counts them.
class Server {
 public:
  explicit Server(std::string bytes)
      : bytes_(std::move(bytes)), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket_, plain, size) != 0 || ::listen(socket_, 16) != 0 ||
        ::getsockname(socket_, plain, &size) != 0) {
      fail(Fault::internal, "no port on 127.0.0.1 can be had");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      for (int peer; (peer = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0; ::close(peer))
        answer(peer);
    });
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  std::string url() const { return text("http://127.0.0.1:", port_); }
  int64_t served() const { return served_; }

 private:
  void answer(int peer) {
    char request[4096];
    if (::recv(peer, request, sizeof request, 0) <= 0) return;
    ++served_;
    sleep_for(0.3);
    const std::string whole =
        text("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ", bytes_.size(), "\r\n\r\n") + bytes_;
    for (size_t at = 0; at < whole.size();) {
      const ssize_t sent = ::send(peer, whole.data() + at, whole.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return;
      at += static_cast<size_t>(sent);
    }
  }

  std::string bytes_;
  int socket_;
  int port_ = 0;
  std::atomic<int64_t> served_ = 0;
  std::thread thread_;
};

/// What is wrong with eight that fetch one corpus into one folder at once.
std::string fetched_together(const Scene& scene, const Server& server, const std::string& archive,
                             int64_t round) {
  const std::string folder = text("cache", round);
  const int64_t before = server.served();
  std::vector<Process> all;
  for (int i = 0; i < 8; ++i) {
    all.emplace_back(scene.heed({"data", "get", "opus_books", "--url", server.url(), "--out", folder}));
  }
  std::string wrong;
  for (Process& one : all) {
    const Ended end = one.wait();
    if (wrong.empty() && !end.ok()) wrong = end.said();
  }
  if (!wrong.empty()) return wrong;
  if (server.served() != before + 1)
    return text("it was fetched ", server.served() - before, " times, not once");
  const Path kept = scene.room.path() / folder / "en-it.txt.zip";
  if (sha256_hex(io::read(kept)) != sha256_hex(archive)) return "what is kept is not what was sent";
  return "";
}

}  // namespace

Result stopped_by_signal(const Scene& scene) {
  const Reference reference = reference_run(scene);
  std::mt19937_64 generator(scene.seed);
  std::uniform_real_distribution<double> moment(0, reference.seconds);
  Tally tally;
  double longest = 0, longest_second = 0;
  for (const int number : {SIGTERM, SIGINT}) {
    for (int64_t i = 0; i < scene.amount(3, 50); ++i) {
      const double delay = moment(generator);
      tally.add(text("signal ", number, " after ", static_cast<int64_t>(1000 * delay), " ms"),
                stopped_once(scene, reference, number, delay, longest));
    }
    for (int64_t i = 0; i < scene.amount(1, 5); ++i) {
      tally.add(text("signal ", number, " twice"), stopped_at_once(scene, number, longest_second));
    }
  }
  // A machine under load may be late, so the short form, which runs beside other tests, has more patience.
  const double patience = scene.whole ? 0.2 : 2;
  if (longest_second > patience) tally.fault(text("a second signal took ", longest_second, " s"));
  return tally.result(text(" stops; at most ", static_cast<int64_t>(1000 * longest), " ms to save and go, ",
                           static_cast<int64_t>(1000 * longest_second),
                           " ms for a second signal; the same weights later"));
}

Result one_at_a_time(const Scene& scene) {
  Tally tally;
  for (int64_t i = 0; i < scene.amount(1, 20); ++i) {
    const std::string name = text("shared", i);
    tally.add("8 begin", only_one_runs(scene, tiny_train(scene, name, {"--steps", "100000000"})));
    // What the killed one left behind blocks nobody, and again one of eight goes on with it.
    tally.add("8 go on after a kill", only_one_runs(scene, tiny_resume(name)));
  }
  return tally.result(
      " times 1 of 8 ran and 7 ended with code 6 and its pid; a killed holder blocked nobody");
}

Result prepared_once(const Scene& scene) {
  if (!have("curl")) return skip("curl is not installed, and heed data get fetches with it");
  std::string english, italian;
  for (int i = 0; i < 2000; ++i) {
    english += text("the house number ", i, " is red\n");
    italian += text("la casa numero ", i, " è rossa\n");
  }
  const std::string archive = zip({{"Books.en-it.en", english}, {"Books.en-it.it", italian}});
  const Server server(archive);
  Tally tally;
  for (int64_t i = 0; i < scene.amount(1, 10); ++i) {
    tally.add(text("round ", i), fetched_together(scene, server, archive, i));
  }
  return tally.result(" times 8 at once: 1 fetched, 7 found it there; the same SHA-256");
}

}  // namespace heed::scorecard
