// A verb of the program, and what was typed after it.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "train/config.h"

namespace heed {

/// A command line, taken apart.
struct Invocation {
  std::string verb;
  std::vector<std::string> words;                           ///< what is no option
  std::map<std::string, std::vector<std::string>> options;  ///< by name without dashes; a flag has no values
  std::vector<std::string> arguments;                       ///< everything as typed

  bool has(const std::string& name) const { return options.contains(name); }
  /// The last value of an option.
  std::string get(const std::string& name, const std::string& otherwise = "") const;
  int64_t integer(const std::string& name, int64_t otherwise) const;  ///< Fails naming the option
  double number(const std::string& name, double otherwise) const;     ///< Fails naming the option
  std::string command() const;                                        ///< the arguments as one line
};

struct VerbOption {
  const char* name;   ///< without dashes
  const char* value;  ///< what it takes, in capitals; empty: a flag
  const char* help;
};

/// One verb.
struct Verb {
  const char* name;
  const char* about;
  const char* words;       ///< "PRESET|FILE"
  const char* words_help;  ///< what these are
  size_t least, most;      ///< how many words
  std::vector<VerbOption> options;
  bool settings;  ///< takes every key of Config as an option too
  int (*run)(const Invocation&);
  std::string (*more)() = nullptr;  ///< what its own help says besides `about`
};

/// All verbs, in the order of the help.
std::span<const Verb> verbs();

/// The preset or file that a call's first word names (or `otherwise`), of the recipe that --recipe names.
std::string named_preset(const Invocation& call, const std::string& otherwise = "");
/// --recipe, for verbs that take a preset.
inline constexpr VerbOption recipe_option{
    "recipe", "NAME", "of a preset that has several: tiny, google, nystrom, skyformer or best"};

/// Settings that any config may be given, under their short and dotted names: --rate and --train.rate.
struct Setting {
  std::string key;     ///< "train.rate"
  std::string option;  ///< "rate", or the dotted key where the last part is not unique
  std::string help;    ///< with the words it takes, and in brackets its value where nobody says it
  bool word = false;   ///< takes one of several words
};
/// Every setting of every task. A key that not all tasks have, or that means something else in some, says
/// what it is in which, a line each.
std::vector<Setting> settings();

/// Refuses the first option that is none of these: "WHO: --rate WHY". What a call does not use would be
/// passed over unseen. --threads, --device and --memory always go.
void refuse_others(const Invocation& call, const std::string& who, const std::set<std::string>& taken,
                   const std::string& why);

/// Applies options and --set to a config, in this order.
void apply_settings(Config& config, const Invocation& call);

/// Threads, memory cap and the like: options every working verb takes.
void apply_machine(const Invocation& call);
std::vector<VerbOption> with_machine(std::vector<VerbOption> options);

/// --beam and --length-penalty, of verbs that decode with a run's model; checks the config afterwards.
void apply_decoding(Config& config, const Invocation& call);
std::vector<VerbOption> with_decoding(std::vector<VerbOption> options);

/// The program: parses, runs, prints errors, gives the exit code.
int run_program(int count, char** arguments);

}  // namespace heed
