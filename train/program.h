// A program of one's own with all commands of heed: register what it adds, then call run_program().
//
//   int main(int count, char** arguments) {
//     heed::register_task({"parity", "is the number of ones even?", make_parity});
//     return heed::run_program(count, arguments);
//   }
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "heed/train/config/config.h"
#include "heed/train/tasks/registry.h"

namespace heed {

class TrainCallback;

/// A command line, parsed: heed COMMAND POSITIONAL... --OPTION VALUE...
struct ParsedArguments {
  std::string command;                                      ///< its name: "train"
  std::vector<std::string> positional;                      ///< the arguments that are no options
  std::map<std::string, std::vector<std::string>> options;  ///< by name without dashes; a flag has no values
  std::vector<std::string> argv;                            ///< everything as typed
  std::vector<TrainCallback*> callbacks = {};               ///< called in training: see run_program()

  bool has(const std::string& name) const { return options.contains(name); }  ///< whether an option was given
  /// The last value of an option.
  std::string get(const std::string& name, const std::string& otherwise = "") const;
  /// The whole number that an option gives. Fails, naming the option, unless it is `min` to `max`.
  int64_t integer(const std::string& name, int64_t otherwise, int64_t min = -max_integer,
                  int64_t max = max_integer) const;
  double number(const std::string& name, double otherwise) const;  ///< Fails naming the option
  /// One of `words`, which an option gives. Fails, with the nearest of them, on another word.
  std::string word(const std::string& name, const std::vector<std::string>& words,
                   const std::string& otherwise) const;
  std::string command_line() const;  ///< program and argv as one line
};

/// An option of a command.
struct CommandOption {
  const char* name;   ///< without dashes
  const char* value;  ///< what it takes, in capitals; empty: a flag
  const char* help;   ///< what it does
};

/// One command. Its texts must live as long as the program: literals do.
struct Command {
  const char* name;                  ///< the word that users type
  const char* about;                 ///< what it does, in a few words
  const char* positional = "";       ///< its positional arguments: "PRESET|FILE"; empty where it takes none
  const char* positional_help = "";  ///< what these are
  size_t min_positional = 0;         ///< minimum number of positional arguments
  size_t max_positional = 0;         ///< maximum number of positional arguments
  std::vector<CommandOption> options = {};  ///< its options besides those of settings
  bool settings = false;                    ///< takes every setting as an option too: apply_settings()
  int (*run)(const ParsedArguments&) =
      nullptr;                      ///< returns the exit code; its exceptions are printed as errors
  std::string (*more)() = nullptr;  ///< text of its own help behind `about`
  bool several_processes = false;   ///< whether each of the processes of mpirun may run it
  bool attention = true;            ///< with `settings`: takes --attention and --cross-attention as well
  /// Whether an option goes with these positional arguments; null: all do. The present name of a renamed
  /// option is suggested only where it does.
  bool (*takes_option)(const std::vector<std::string>& positional, const std::string& option) = nullptr;
};

/// Adds a preset, written as a .toml file of settings; it may begin from another (`preset = "lm"`), and its
/// task is registered before it. Called before run_program(), from one thread. A usage error when the name is
/// taken or training would refuse the text.
void register_preset(const std::string& name, const std::string& toml);
/// Adds a command. Called before run_program(), from one thread. A usage error when the name is taken or is
/// none.
void register_command(const Command& command);

/// `word`, which must be one of `words`: else fails with "WHERE 'word' is unknown." and the nearest of them.
std::string known_word(const std::string& where, const std::string& word,
                       const std::vector<std::string>& words);

/// The preset or file that the first positional argument names (or `otherwise`), of the recipe that --recipe
/// names.
std::string named_preset(const ParsedArguments& arguments, const std::string& otherwise = "");
/// Applies the options of settings to a config, and then --set, which wins. For a command with `settings`.
void apply_settings(Config& config, const ParsedArguments& arguments);
/// Applies the options that with_machine_options() adds: threads, device, memory limit.
void apply_machine(const ParsedArguments& arguments);
/// These options and --threads, --device and --memory.
std::vector<CommandOption> with_machine_options(std::vector<CommandOption> options);
/// Fails at the first option that is not in `taken`: "WHO: --lr WHY". An option that a command does not use
/// would otherwise be ignored without notice. --threads, --device and --memory are always allowed.
void refuse_others(const ParsedArguments& arguments, const std::string& who,
                   const std::set<std::string>& taken, const std::string& why);

/// The program: parses, runs, prints errors, gives the exit code. Training calls `callbacks`
/// (train/loop/train_callback.h), which must outlive the call.
int run_program(int count, char** arguments, const std::vector<TrainCallback*>& callbacks = {});

}  // namespace heed
