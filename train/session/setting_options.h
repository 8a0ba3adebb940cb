// Settings as options of the command line.
#pragma once

#include <string>
#include <vector>

#include "heed/train/experiments/setting_grid.h"
#include "heed/train/program.h"

namespace heed {

/// A setting as an option, under its short and its dotted name: --lr and --train.learning_rate.
struct Setting {
  std::string key;     ///< "train.learning_rate"
  std::string option;  ///< "learning-rate", or the dotted key where an earlier group has that name too
  std::string brief;   ///< a second, shorter option, "lr"; most have none
  std::string help;    ///< with the words or the range that it takes, and its default in brackets
  bool word = false;   ///< takes one of several words
};
/// Every setting of every task. The help of a setting that means something in some tasks only has a line for
/// each meaning, which names its tasks.
std::vector<Setting> settings();

/// Sets `key` to the value of an option, where it is given.
void set_by_option(Config& config, const std::string& key, const ParsedArguments& arguments,
                   const std::string& option);

/// --attention, --cross-attention and --set: options that a command with `settings` takes besides the
/// settings and its own options.
std::vector<CommandOption> options_beside_settings(const Command& command);

/// The arguments with the values of a point as options of settings, which it names by option or dotted key.
/// Fails for an unknown setting (naming the nearest), for the attention and the seed, which have options of
/// their own, and where the arguments set one of these settings already.
ParsedArguments with_point(ParsedArguments arguments, const GridPoint& point);

}  // namespace heed
