// SIGINT and SIGTERM, caught so that a run can finish its step and save.
#pragma once

namespace heed {

/// Sets the flag of SIGINT and SIGTERM instead of ending the process; a second signal ends it at once.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  static int received();  ///< the signal's number, or 0
};

}  // namespace heed
