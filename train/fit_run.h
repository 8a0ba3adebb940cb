// Compares the data and options of a call of fit() with those of the run it resumes, and records sessions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heed/train/config/config.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/run_folder.h"

namespace heed {

/// The data of a run of fit(), and the score that chooses its best checkpoint.
struct FitData {
  std::string batches = {};     ///< DataLoader::description()
  std::string examples = {};    ///< DataLoader::identity(); empty where it is not known
  std::string validation = {};  ///< DataLoader::identity() of the validation data; empty: none
  std::string best_by = {};     ///< the metric that decides which checkpoint is best; empty: no validation
};

/// `data` as files of a checkpoint.
std::vector<NamedBytes> data_files(const FitData& data);

/// Fails where a run was trained on other data than `now`, is validated on other data, or chooses its best
/// checkpoint by another metric. A checkpoint of an earlier program lacks some of these; they are not
/// compared then.
void check_fit_data(const FitData& now, const Checkpoint& checkpoint, const Path& run);

/// config.toml of a run of fit(): the options of its loop.
std::string fit_settings_text(TrainOptions train);

/// An option that a call of fit() has otherwise than the run that it resumes.
struct ChangedOption {
  std::string key;     ///< name of the option in config.toml: "train.patience"
  std::string before;  ///< its value in the run, as text
  std::string now;     ///< its value from now on
};

/// The options that differ from those in config.toml of the run. Fault::data where that is no run of fit().
std::vector<ChangedOption> changed_fit_options(TrainOptions now, const RunFolder& run);

/// Fails naming the options whose change would make the run one of neither: any but its length, patience,
/// stop_score, time_limit, on_nan, validate_every and keep_checkpoints.
void check_fit_options(const std::vector<ChangedOption>& changed, const Path& run);

/// "FitOptions::patience = 3, before 0".
std::string to_string(const ChangedOption& option);

/// Begins a session after `step` steps: writes config.toml, and adds the session, with the options that it
/// changes, to the manifest. Warns where program or machine differ from those of the steps before.
void begin_fit_session(const RunFolder& run, const TrainOptions& train, const FitData& data,
                       const std::vector<ChangedOption>& changed, int64_t processes, int64_t step);

}  // namespace heed
