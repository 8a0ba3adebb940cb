// Timing, tables and memory of the process.
#include "heed/train/bench/measure.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "heed/core/cuda/runtime/context.h"
#include "heed/core/device.h"
#include "heed/core/gpu_info.h"
#include "heed/core/io/files.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/table_text.h"
#include "heed/core/isa.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/train/loop/machine_memory.h"
#include "heed/train/progress/progress.h"

namespace heed::bench {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<int64_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double median_time(const std::function<void()>& run, double budget, size_t min_calls) {
  constexpr size_t max_calls = 10000;
  run();
  std::vector<double> times;
  const double began = seconds_now();
  while (times.size() < min_calls || (seconds_now() - began < budget && times.size() < max_calls))
    times.push_back(timed(run));
  return median(std::move(times));
}

double timed(const std::function<void()>& run) {
  synchronize(default_device);
  const double start = seconds_now();
  run();
  synchronize(default_device);  // kernels run asynchronously
  return seconds_now() - start;
}

namespace {

/// Involuntary context switches of this process so far.
int64_t interruptions() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  return use.ru_nivcsw;
}

/// A value of a row as text; empty for a missing one.
std::string cell(const Json* value, int decimals) {
  if (value == nullptr || value->is_null()) return "";
  if (value->is_text()) return value->text();
  if (!value->is_number()) return value->dump();
  return formatted("%.*f", decimals, value->real());
}

}  // namespace

void print_machine(const Json& row) {
  const Json* row_threads = row.find("threads");
  const int64_t count = row_threads != nullptr ? row_threads->integer() : threads();
  const char* forced = std::getenv("OPENBLAS_CORETYPE");
  if (default_device != Device::cpu) {
    io::printf("%s\n", gpu_words().c_str());
    if (cuda::emulated)
      io::print("The CPU emulates this device: times mean nothing, some extents are smaller.\n");
  }
  io::printf("%lld thread%s, kernels %s, OpenBLAS %s%s\n\n", static_cast<long long>(count),
             count == 1 ? "" : "s", isa_name(), blas_core().c_str(),
             forced != nullptr ? " (set by OPENBLAS_CORETYPE)" : "");
}

ContextSwitches::ContextSwitches() : before_(interruptions()), began_(seconds_now()) {}

double ContextSwitches::per_second() const {
  return static_cast<double>(interruptions() - before_) / std::max(1e-3, seconds_now() - began_);
}

void Table::row(const Json& row) {
  const Json* interrupted = row.find("interruptions_per_s");
  if (interrupted != nullptr && interrupted->real() > max_interruptions) {
    const std::string name = cell(row.find(columns_[0].key), 0);
    if (disturbed_.empty() || disturbed_.back() != name) disturbed_.push_back(name);
  }
  if (json_) {
    io::print_data(row.dump() + "\n");
    io::flush_output();
    return;
  }
  TableRow headings, cells;
  for (const Column& column : columns_) {
    headings.emplace_back(column.heading);
    cells.push_back(cell(row.find(column.key), column.decimals));
  }
  if (!begun_) print_machine(row);
  // The first column holds names, the others numbers; rows are printed immediately, so widths are fixed.
  const auto width = [&](size_t i) { return i == 0 ? 24 : std::max<size_t>(8, headings[i].size()); };
  size_t columns = 1;
  for (size_t i = 0; i < headings.size(); ++i) columns += width(i) + 3;
  if (static_cast<int64_t>(columns) <= terminal_columns(STDOUT_FILENO, unlimited_columns)) {
    const auto line = [&](const TableRow& words) {
      std::string out = "|";
      for (size_t i = 0; i < words.size(); ++i) {
        const std::string blanks(width(i) - std::min(width(i), words[i].size()), ' ');
        out += " " + (i == 0 ? words[i] + blanks : blanks + words[i]) + " |";
      }
      io::print_data(out + "\n");
    };
    if (!begun_) {
      line(headings);
      std::string rule = "|";
      for (size_t i = 0; i < headings.size(); ++i)
        rule += "-" + std::string(width(i), '-') + (i == 0 ? "-|" : ":|");
      io::print_data(rule + "\n");
    }
    line(cells);
  } else {
    io::print(aligned_table({headings, cells}, {.alignment = "l" + std::string(headings.size(), 'r')}) +
              "\n");
  }
  begun_ = true;
  io::flush_output();
}

Table::~Table() {
  if (json_ || disturbed_.empty()) return;
  std::string names;
  for (const std::string& name : disturbed_) names += (names.empty() ? "" : ", ") + name;
  io::printf("\nOther programs were at work on this machine during: %s. Measure these again.\n",
             names.c_str());
}

Json with_machine_metadata(Json row) {
  row.set("device", to_string(default_device));
  if (default_device != Device::cpu) row.set("gpu", gpu_words());
  row.set("threads", threads());
  row.set("isa", isa_name());
  row.set("blas_core", blas_core());
  const char* forced = std::getenv("OPENBLAS_CORETYPE");
  row.set("blas_core_forced", forced != nullptr ? forced : "");
  return row;
}

int64_t resident_peak() {
  if (const int64_t peak = peak_resident_bytes(); peak > 0) return peak;
  rusage use{};  // no /proc: the peak over the process's life
  ::getrusage(RUSAGE_SELF, &use);
  return int64_t{use.ru_maxrss} * 1024;
}

void reset_resident_peak() {
  malloc_trim(0);
  try {
    const std::string_view peak_is_now = "5";  // resets the peak in the kernel
    io::write_plain("/proc/self/clear_refs", {&peak_is_now, 1});
  } catch (const Error&) {  // without /proc the peak is that of the whole process
  }
}

}  // namespace heed::bench
