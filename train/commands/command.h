// A verb of the program, and what was typed after it.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "heed/train/config/config.h"

namespace heed {

class TrainCallback;

/// A command line, taken apart.
struct ParsedArguments {
  std::string verb;
  std::vector<std::string> words;                           ///< what is no option
  std::map<std::string, std::vector<std::string>> options;  ///< by name without dashes; a flag has no values
  std::vector<std::string> arguments;                       ///< everything as typed
  std::vector<TrainCallback*> callbacks = {};               ///< of training: see run_program()

  bool has(const std::string& name) const { return options.contains(name); }
  /// The last value of an option.
  std::string get(const std::string& name, const std::string& otherwise = "") const;
  int64_t integer(const std::string& name, int64_t otherwise) const;  ///< Fails naming the option
  double number(const std::string& name, double otherwise) const;     ///< Fails naming the option
  std::string command() const;                                        ///< the arguments as one line
};

struct CommandOption {
  const char* name;   ///< without dashes
  const char* value;  ///< what it takes, in capitals; empty: a flag
  const char* help;
};

/// One verb.
struct Command {
  const char* name;
  const char* about;
  const char* words;       ///< "PRESET|FILE"
  const char* words_help;  ///< what these are
  size_t least, most;      ///< how many words
  std::vector<CommandOption> options;
  bool settings;  ///< takes every key of Config as an option too
  int (*run)(const ParsedArguments&);
  std::string (*more)() = nullptr;  ///< what its own help says besides `about`
  bool several_processes = false;   ///< whether all of those that mpirun started may run it
};

/// All verbs, in the order of the help.
std::span<const Command> commands();
/// Every command with its arguments and options: the page docs/reference/commands.md.
std::string commands_markdown();

/// The preset or file that a call's first word names (or `otherwise`), of the recipe that --recipe names.
std::string named_preset(const ParsedArguments& call, const std::string& otherwise = "");
/// --recipe, for verbs that take a preset.
inline constexpr CommandOption recipe_option{
    "recipe", "NAME", "of a preset that has several: tiny, google, nystrom, skyformer or best"};

/// Settings that any config may be given, under their short and dotted names: --lr and --train.learning_rate.
struct Setting {
  std::string key;     ///< "train.learning_rate"
  std::string option;  ///< "learning-rate", or the dotted key where an earlier group has that name too
  std::string brief;   ///< a second, shorter option, "lr"; mostly empty
  std::string help;    ///< with the words it takes, and in brackets its value where nobody says it
  bool word = false;   ///< takes one of several words
};
/// Every setting of every task. A key that not all tasks have, or that means something else in some, says
/// what it is in which, a line each.
std::vector<Setting> settings();
/// All settings with their options: the page docs/reference/settings.md.
std::string settings_markdown();

/// Refuses the first option that is none of these: "WHO: --lr WHY". What a call does not use would be
/// passed over unseen. --threads, --device and --memory always go.
void refuse_others(const ParsedArguments& call, const std::string& who, const std::set<std::string>& taken,
                   const std::string& why);

/// Applies options and --set to a config, in this order.
void apply_settings(Config& config, const ParsedArguments& call);

/// Threads, memory cap and the like: options every working verb takes.
void apply_machine(const ParsedArguments& call);
std::vector<CommandOption> with_machine(std::vector<CommandOption> options);

/// --beam-size and --length-penalty, of verbs that decode with a run's model; checks the config afterwards.
void apply_decoding(Config& config, const ParsedArguments& call);
std::vector<CommandOption> with_decoding(std::vector<CommandOption> options);

/// The program: parses, runs, prints errors, gives the exit code. Training calls `callbacks`, which programs
/// built on this one may add (train/loop/train_callback.h).
int run_program(int count, char** arguments, const std::vector<TrainCallback*>& callbacks = {});

}  // namespace heed
