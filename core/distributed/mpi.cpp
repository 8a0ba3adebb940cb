// Process groups by OpenMPI, which is opened when several processes were started.
#include "heed/core/distributed/mpi.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <vector>

#include "heed/core/distributed/heartbeat.h"
#include "heed/core/io/files.h"
#include "heed/core/io/number_text.h"
#include "heed/core/scope.h"
#include "heed/core/settings_in_errors.h"

namespace heed {
namespace {

/// The whole number in an environment variable; -1 where there is none.
int64_t number_in(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr ? parsed_integer(value).value_or(-1) : -1;
}

#if HEED_MPI

/// The functions of MPI that Heed calls, as OpenMPI 2 to 5 (libmpi.so.40) has them: its handles are pointers,
/// its constants addresses of its variables.
struct MpiTable {
  using Handle = void*;
  int (*init_thread)(int*, char***, int, int*);
  int (*finalize)();
  int (*library_version)(char*, int*);
  int (*rank)(Handle, int*);
  int (*size)(Handle, int*);
  int (*abort)(Handle, int);
  int (*all_to_all)(const void*, int, Handle, void*, int, Handle, Handle, Handle*);
  int (*all_gather)(const void*, int, Handle, void*, int, Handle, Handle, Handle*);
  int (*broadcast)(void*, int, Handle, int, Handle, Handle*);
  int (*barrier)(Handle, Handle*);
  int (*test)(Handle*, int*, void*);
  int (*send)(const void*, int, Handle, int, int, Handle, Handle*);
  int (*probe)(int, int, Handle, int*, void*);
  int (*receive)(void*, int, Handle, int, int, Handle, void*);
  Handle world, byte;
};

constexpr int serialized = 2;  // MPI_THREAD_SERIALIZED

/// Opens OpenMPI; null, with the reason in `why`, where that fails.
const MpiTable* load_mpi(std::string& why) {
  static MpiTable table{};
  bool is_complete = true;
  // RTLD_GLOBAL, since plugins of OpenMPI look for its symbols in the whole program.
  void* library = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    why = text("OpenMPI's library cannot be opened (", dlerror(), ")");
    return nullptr;
  }
  const auto find = [&](const char* name, auto& symbol) {
    void* found = dlsym(library, name);
    if (found == nullptr && is_complete) why = text("libmpi.so.40 is not OpenMPI's: it has no ", name);
    is_complete = is_complete && found != nullptr;
    symbol = reinterpret_cast<std::remove_reference_t<decltype(symbol)>>(found);
  };
  find("MPI_Init_thread", table.init_thread);
  find("MPI_Finalize", table.finalize);
  find("MPI_Get_library_version", table.library_version);
  find("MPI_Comm_rank", table.rank);
  find("MPI_Comm_size", table.size);
  find("MPI_Abort", table.abort);
  find("MPI_Ialltoall", table.all_to_all);
  find("MPI_Iallgather", table.all_gather);
  find("MPI_Ibcast", table.broadcast);
  find("MPI_Ibarrier", table.barrier);
  find("MPI_Test", table.test);
  find("MPI_Isend", table.send);
  find("MPI_Iprobe", table.probe);
  find("MPI_Recv", table.receive);
  find("ompi_mpi_comm_world", table.world);
  find("ompi_mpi_byte", table.byte);
  return is_complete ? &table : nullptr;
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A thread that sends heartbeats to all other processes and ends the job where one of them sends none, so
/// that no process waits longer than the limit, in MPI or for a device.
class Heartbeat : NonCopyable {
 public:
  /// `calls`: locked during calls of MPI, since one thread at a time may make them.
  Heartbeat(const MpiTable& table, std::mutex& calls, const ProcessGroup& group, double limit)
      : mpi_(table),
        calls_(calls),
        group_(group),
        limit_(limit),
        monitor_(group.rank(), group.size(), limit, steady_seconds()),
        last_sent_(static_cast<size_t>(group.size())),
        thread_([this] { beat(); }) {}
  ~Heartbeat() { stop(); }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  /// Receives the remaining heartbeats, after all processes have stopped theirs.
  void drain() {
    for (int64_t i = 0; i < group_.size(); ++i) receive_from(i);
  }

 private:
  static constexpr int tag = 7;  // marks heartbeats, the only messages with a tag

  void beat() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      for (int64_t i = 0; i < group_.size(); ++i) {
        if (i == group_.rank()) continue;
        receive_from(i);
        send_to(i);
      }
      if (const std::vector<int64_t> silent = monitor_.silent(steady_seconds()); !silent.empty())
        end_job(silent);
      changed_.wait_for(lock, std::chrono::duration<double>(monitor_.period()), [this] { return stop_; });
    }
  }

  /// Receives all heartbeats of a process that have arrived.
  void receive_from(int64_t rank) {
    const int from = static_cast<int>(rank);
    for (;;) {
      const std::lock_guard lock(calls_);
      int has_message = 0;
      char heartbeat = 0;
      mpi_.probe(from, tag, mpi_.world, &has_message, nullptr);
      if (has_message == 0) return;
      mpi_.receive(&heartbeat, 1, mpi_.byte, from, tag, mpi_.world, nullptr);
      monitor_.heard(rank, steady_seconds());
    }
  }

  /// Sends a heartbeat, unless the last one has not left yet: at most one waits for a process that receives
  /// none.
  void send_to(int64_t rank) {
    const std::lock_guard lock(calls_);
    Message& last = last_sent_[static_cast<size_t>(rank)];
    int done = 1;
    if (last.is_under_way) mpi_.test(&last.request, &done, nullptr);
    last.is_under_way = true;
    if (done == 0) return;
    mpi_.send(&heartbeat_byte_, 1, mpi_.byte, static_cast<int>(rank), tag, mpi_.world, &last.request);
  }

  /// Names the silent processes on standard error and ends the job.
  [[noreturn]] void end_job(const std::vector<int64_t>& silent) {
    io::print_error(text("error: ", describe_rank(group_), ": ", names_of_members(silent, group_.size()),
                         " gave no sign of life for ", formatted("%.0f", limit_), " s (",
                         advice("--collective-timeout", "the timeout of join_processes()"),
                         "): stopped, dead, or its machine is not reached. The run ends; ",
                         advice("resume with heed resume, from the last checkpoint.\n",
                                "start the program again to resume it from its last checkpoint.\n")));
    std::fflush(nullptr);
    ::alarm(30);  // ends this process where MPI waits for a dead one
    const std::lock_guard lock(calls_);
    mpi_.abort(mpi_.world, static_cast<int>(Fault::device));
    std::_Exit(static_cast<int>(Fault::device));
  }

  struct Message {
    MpiTable::Handle request = nullptr;
    bool is_under_way = false;
  };

  const MpiTable& mpi_;
  std::mutex& calls_;
  const ProcessGroup& group_;
  const double limit_;
  const char heartbeat_byte_ = 1;
  HeartbeatMonitor monitor_;
  std::vector<Message> last_sent_;  // to each process
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;  // last, since it uses the other members
};

/// The group of all processes of the job. Where MPI itself fails it ends the job.
class MpiProcessGroup final : public ProcessGroup {
 public:
  MpiProcessGroup(const MpiTable& table, int rank, int size, double timeout)
      : ProcessGroup(rank, size), mpi_(table) {
    if (timeout > 0) heartbeat_ = std::make_unique<Heartbeat>(mpi_, calls_, *this, timeout);
  }

  ~MpiProcessGroup() override {
    barrier();
    if (heartbeat_) {
      heartbeat_->stop();
      barrier();
      heartbeat_->drain();
    }
    mpi_.finalize();
  }

  void all_to_all(const void* from, void* to, int64_t bytes) override {
    wait([&](MpiTable::Handle* request) {
      mpi_.all_to_all(from, narrow(bytes), mpi_.byte, to, narrow(bytes), mpi_.byte, mpi_.world, request);
    });
  }
  void all_gather(const void* from, void* to, int64_t bytes) override {
    wait([&](MpiTable::Handle* request) {
      mpi_.all_gather(from, narrow(bytes), mpi_.byte, to, narrow(bytes), mpi_.byte, mpi_.world, request);
    });
  }
  void broadcast(void* data, int64_t bytes) override {
    constexpr int64_t max_bytes = int64_t{1} << 30;
    for (int64_t at = 0; at < bytes; at += max_bytes) {
      wait([&](MpiTable::Handle* request) {
        mpi_.broadcast(static_cast<char*>(data) + at, narrow(std::min(max_bytes, bytes - at)), mpi_.byte, 0,
                       mpi_.world, request);
      });
    }
  }
  void abandon(int code) override {
    const std::lock_guard lock(calls_);
    mpi_.abort(mpi_.world, code);
    std::_Exit(code);
  }

 private:
  static int narrow(int64_t bytes) {
    if (bytes > INT_MAX) fail("mpi: a message of ", bytes, " bytes is more than it takes (", INT_MAX, ").");
    return static_cast<int>(bytes);
  }

  void barrier() {
    wait([&](MpiTable::Handle* request) { mpi_.barrier(mpi_.world, request); });
  }

  /// Starts an operation and waits for its end. MPI's own wait never sleeps and so takes a core that a slower
  /// process may need: this one tests ever less often. The heartbeat limits the time.
  template <class Start>
  void wait(Start start) {
    using std::chrono::steady_clock;
    MpiTable::Handle request = nullptr;
    {
      const std::lock_guard lock(calls_);
      start(&request);
    }
    const auto start_time = steady_clock::now();
    for (;;) {
      int done = 0;
      {
        const std::lock_guard lock(calls_);
        mpi_.test(&request, &done, nullptr);
      }
      if (done != 0) return;
      const auto waited = steady_clock::now() - start_time;
      if (waited < std::chrono::microseconds(50)) continue;
      if (waited < std::chrono::milliseconds(5))
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(waited < std::chrono::seconds(1) ? 50 : 1000));
    }
  }

  const MpiTable& mpi_;
  std::mutex calls_;  // locked during calls of MPI
  std::unique_ptr<Heartbeat> heartbeat_;
};

#endif

constexpr const char* not_built = "this heed was built without MPI (HEED_MPI=OFF)";

}  // namespace

std::optional<LaunchInfo> launch_info() {
  // srun sets SLURM_STEP_* for its processes, but not for the script of a job, which is one process.
  for (const auto& [launcher, size, rank, local_rank] :
       {std::tuple{"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"},
        std::tuple{"mpirun", "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID"},
        std::tuple{"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID"}}) {
    const int64_t count = number_in(size), number = number_in(rank);
    if (count < 1 || number < 0) continue;
    if (count == 1) return {};
    return LaunchInfo{.by = launcher, .rank = number, .size = count, .place = number_in(local_rank)};
  }
  return {};
}

std::unique_ptr<ProcessGroup> join_by_mpi([[maybe_unused]] double timeout) {
#if HEED_MPI
  std::string why;
  const MpiTable* table = load_mpi(why);
  if (table == nullptr) {
    fail(Fault::device, "mpi: ", why,
         ". Install OpenMPI (Debian: libopenmpi3) on every machine, name its folder in LD_LIBRARY_PATH, or "
         "start one process.");
  }
  int provided = 0, rank = 0, size = 0;
  table->init_thread(nullptr, nullptr, serialized, &provided);
  table->rank(table->world, &rank);
  table->size(table->world, &size);
  auto group = std::make_unique<MpiProcessGroup>(*table, rank, size, provided < serialized ? 0 : timeout);
  if (provided < serialized) {
    throw CollectiveError(Fault::device,
                          "mpi: this OpenMPI lets only its first thread send. Take one built with threads.");
  }
  if (const auto started = launch_info(); started && started->size != size) {
    throw CollectiveError(
        Fault::device, text("mpi: ", started->by, " started ", started->size, " processes, but each finds ",
                            size, ". Use the mpirun of the OpenMPI that heed opens, or srun --mpi=pmix."));
  }
  return group;
#else
  fail(not_built, ". Configure with -DHEED_MPI=ON, or start one process.");
#endif
}

std::string mpi_words() {
#if HEED_MPI
  std::string why;
  const MpiTable* table = load_mpi(why);
  if (table == nullptr) return "no: " + why;
  char words[256 + 1] = "";  // MPI_MAX_LIBRARY_VERSION_STRING of OpenMPI
  int length = 0;
  table->library_version(words, &length);
  const std::string_view version = words;
  return std::string(version.substr(0, version.find(',')));
#else
  return text("no: ", not_built);
#endif
}

}  // namespace heed
