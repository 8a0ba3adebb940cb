// An HTTP server on 127.0.0.1 that serves files from memory, with byte ranges and injected faults.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "heed/core/error.h"
#include "heed/tests/catch.h"

namespace heed {

/// Injected faults.
struct LoopbackFaults {
  int64_t break_after = -1;  ///< closes the connection after so many bytes of a body
  int breaks = 0;            ///< how many times
  bool no_ranges = false;    ///< ignores ranges
  int64_t chunked = 0;       ///< > 0: sends a file in chunks again and again, up to so many bytes
};

/// Serves until its destructor.
class Loopback {
 public:
  explicit Loopback(std::map<std::string, std::string> files, LoopbackFaults faults = {})
      : files_(std::move(files)), faults_(faults) {
    socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(socket_ >= 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(listen(socket_, 8) == 0);
    REQUIRE(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;
  ~Loopback() {
    shutdown(socket_, SHUT_RDWR);
    thread_.join();
    close(socket_);
  }

  std::string url() const { return text("http://127.0.0.1:", port_); }
  void replace(const std::string& path, std::string bytes) {
    const std::lock_guard lock(mutex_);
    files_[path] = std::move(bytes);
  }
  /// The first byte of each request's range, in order; -1 for a request without a range.
  std::vector<int64_t> ranges() const {
    const std::lock_guard lock(mutex_);
    return ranges_;
  }
  /// Bytes of chunked responses that were received.
  int64_t chunked_bytes() const {
    const std::lock_guard lock(mutex_);
    return chunked_bytes_;
  }

 private:
  void serve() {
    for (;;) {
      const int peer = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      if (peer < 0) return;
      answer(peer);
      close(peer);
    }
  }

  /// True if all bytes were sent.
  static bool send_all(int peer, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(peer, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  void send_chunks(int peer, const std::string& bytes) {
    char size[20];
    std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
    const std::string chunk = size + bytes + "\r\n";
    send_all(peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
    for (int64_t count = 0; count < faults_.chunked; count += static_cast<int64_t>(bytes.size())) {
      if (!send_all(peer, chunk)) return;
      chunked_bytes_ += static_cast<int64_t>(bytes.size());
    }
    send_all(peer, "0\r\n\r\n");
  }

  void answer(int peer) {
    std::string request;
    char buffer[2048];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t count = recv(peer, buffer, sizeof buffer, 0);
      if (count <= 0) return;
      request.append(buffer, static_cast<size_t>(count));
    }
    const std::lock_guard lock(mutex_);
    const std::string path = request.substr(4, request.find(' ', 4) - 4);
    const size_t range = request.find("Range: bytes=");
    const int64_t asked = range == std::string::npos ? -1 : std::stoll(request.substr(range + 13));
    ranges_.push_back(asked);
    const auto found = files_.find(path);
    if (found == files_.end()) {
      send_all(peer, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
      return;
    }
    if (faults_.chunked > 0) return send_chunks(peer, found->second);
    const std::string& bytes = found->second;
    const auto size = static_cast<int64_t>(bytes.size());
    const int64_t from = faults_.no_ranges || asked < 0 ? 0 : asked;
    if (from > 0 && from >= size) {
      send_all(peer, text("HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */", size,
                          "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
      return;
    }
    const std::string status =
        from > 0 ? text("206 Partial Content\r\nContent-Range: bytes ", from, "-", size - 1, "/", size)
                 : std::string("200 OK");
    send_all(peer,
             text("HTTP/1.1 ", status, "\r\nContent-Length: ", size - from, "\r\nConnection: close\r\n\r\n"));
    int64_t count = size - from;
    if (faults_.breaks > 0) {
      --faults_.breaks;
      count = std::min(count, faults_.break_after);
    }
    send_all(peer, std::string_view(bytes).substr(static_cast<size_t>(from), static_cast<size_t>(count)));
  }

  mutable std::mutex mutex_;
  std::map<std::string, std::string> files_;
  LoopbackFaults faults_;
  std::vector<int64_t> ranges_;
  int64_t chunked_bytes_ = 0;
  int socket_ = -1;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace heed
