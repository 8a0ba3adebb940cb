// TensorBoard event files with scalars, written and truncated without TensorFlow.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/core/io/files.h"

namespace heed {

/// A metric's name and its value at one step.
using Scalar = std::pair<std::string, double>;

/// Prefix of the names of validation scores.
inline constexpr std::string_view score_prefix = "valid_";

/// Encodes a record with these scalars at this step: a TFRecord (length, masked CRC-32C, message, masked
/// CRC-32C) whose message is a protocol buffer `Event`. `wall_time` is in seconds since 1970.
std::string encode_scalar_event(double wall_time, int64_t step, std::span<const Scalar> scalars);

/// A scalar of a record.
struct TaggedScalar {
  std::string tag;   ///< the metric's name
  float number = 0;  ///< its value, rounded to f32 by the format
};

/// A decoded record.
struct ScalarEvent {
  double wall_time = 0;               ///< seconds since 1970
  int64_t step = 0;                   ///< step of the training run
  std::vector<TaggedScalar> scalars;  ///< empty for the first record of a file
  int64_t end = 0;                    ///< byte offset of the record's end
};

/// Decodes the intact records at the beginning of an event file; stops at the first damaged one.
std::vector<ScalarEvent> decode_events(std::string_view bytes);

/// Appends scalars to the event file of a folder. The first write() creates folder and file where they are
/// missing.
class TensorBoard {
 public:
  explicit TensorBoard(const Path& folder);  ///< touches nothing before the first write()
  /// Appends one record and hands it to the system.
  void write(int64_t step, std::span<const Scalar> scalars);
  /// Flushes to disk.
  void sync();
  /// Removes every record after `step`, every record of validation scores after `validated_step`, and a
  /// damaged record at the end.
  void truncate_to(int64_t step, int64_t validated_step = INT64_MAX);

 private:
  void open();

  Path folder_;
  std::optional<io::Appender> file_;
};

}  // namespace heed
