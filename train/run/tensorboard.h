// TensorBoard event files with scalars, written and cut back without its libraries.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/io.h"

namespace heed {

/// A named number of one step.
using Scalar = std::pair<std::string, double>;

/// What the names of a validation's scores begin with.
inline constexpr std::string_view score_prefix = "valid_";

/// The bytes of one record that TensorBoard reads as these scalars at this step. Format: TFRecord framing
/// (length, masked CRC-32C, message, masked CRC-32C) around a protocol buffer `Event`.
std::string encode_scalar_event(double wall_time, int64_t step, std::span<const Scalar> scalars);

/// One record read back.
struct ScalarEvent {
  double wall_time = 0;
  int64_t step = 0;
  std::vector<std::pair<std::string, float>> scalars;  ///< empty for the record that opens a file
  int64_t end = 0;                                     ///< offset of the byte behind the record
};

/// The whole records at the start of an event file; reading ends at the first that is cut short or damaged.
std::vector<ScalarEvent> decode_events(std::string_view bytes);

/// Appends scalars to an event file in a folder. The file is made with the first record, and one that is
/// there is continued.
class TensorBoard {
 public:
  explicit TensorBoard(const Path& folder);
  void write(int64_t step, std::span<const Scalar> scalars);
  /// Forces what was written to the disk.
  void sync();
  /// Drops every record after this step, those of scores after the step `validated`, and a torn one at the
  /// end.
  void rewind(int64_t step, int64_t validated = INT64_MAX);

 private:
  void open();

  Path folder_;
  std::optional<io::Appender> file_;
};

}  // namespace heed
