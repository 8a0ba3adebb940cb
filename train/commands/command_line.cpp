// Parses argv into ParsedArguments and runs the command that it names. The only file that includes CLI11.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <set>
#include <thread>

#include "heed/attention/spec.h"
#include "heed/core/distributed/mpi.h"
#include "heed/core/gpu_info.h"
#include "heed/core/io/files.h"
#include "heed/core/memory/heap_cap.h"
#include "heed/core/memory/storage.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/core/settings_source.h"
#include "heed/core/version.h"
#include "heed/train/commands/command.h"
#include "heed/train/config/config.h"
#include "heed/train/run/program_name.h"
#include "heed/train/run/renamed_settings.h"
#include "heed/train/tasks/task.h"

namespace heed {

std::string ParsedArguments::get(const std::string& name, const std::string& otherwise) const {
  const auto found = options.find(name);
  return found == options.end() || found->second.empty() ? otherwise : found->second.back();
}

namespace {

template <class T>
T parsed(const std::string& name, const std::string& value, const char* needed) {
  T out{};
  const char* end = value.data() + value.size();
  const auto [at, fault] = std::from_chars(value.data(), end, out);
  if (fault != std::errc() || at != end)
    fail("--", name, " = '", value, "' is not legal; it takes ", needed, ".");
  return out;
}

}  // namespace

int64_t ParsedArguments::integer(const std::string& name, int64_t otherwise) const {
  if (!has(name)) return otherwise;
  const auto out = parsed<int64_t>(name, get(name), "a whole number");
  if (name != "seed" && (out > max_integer || out < -max_integer))
    fail("--", name, " = ", out, ". It must be -", max_integer, " to ", max_integer, ".");
  return out;
}

double ParsedArguments::number(const std::string& name, double otherwise) const {
  return has(name) ? parsed<double>(name, get(name), "a number") : otherwise;
}

std::string ParsedArguments::command_line() const {
  std::string out = program_name();
  for (const std::string& argument : argv) out += " " + argument;
  return out;
}

std::string named_preset(const ParsedArguments& arguments, const std::string& otherwise) {
  const std::string asked = arguments.positional.empty() ? otherwise : arguments.positional[0];
  return arguments.has("recipe") ? with_recipe(asked, arguments.get("recipe")) : asked;
}

std::vector<CommandOption> with_machine(std::vector<CommandOption> options) {
  options.push_back({"threads", "N", "number of threads; results do not depend on it"});
  options.push_back({"device", "NAME", "auto, cpu or cuda"});
  options.push_back(
      {"memory", "SIZE",
       "limit of memory, such as 256M or 2G: for tensors on the device; on the CPU for tensors and "
       "all lists and texts (default: what is free)"});
  return options;
}

void refuse_others(const ParsedArguments& arguments, const std::string& who,
                   const std::set<std::string>& taken, const std::string& why) {
  for (const auto& [name, values] : arguments.options) {
    if (name == "threads" || name == "device" || name == "memory" || taken.contains(name)) continue;
    fail(who, ": --", name, " ", why);
  }
}

std::vector<CommandOption> with_decoding(std::vector<CommandOption> options) {
  options.push_back({"beam-size", "N", "beam size; 1: greedy"});
  options.push_back({"length-penalty", "ALPHA", "exponent of the length normalisation of beams"});
  return options;
}

void apply_decoding(Config& config, const ParsedArguments& arguments) {
  if (arguments.has("beam-size"))
    config.set("decode.beam_size", arguments.get("beam-size"), "--beam-size: ", SetBy::command_line);
  if (arguments.has("length-penalty")) {
    config.set("decode.length_penalty", arguments.get("length-penalty"),
               "--length-penalty: ", SetBy::command_line);
  }
  config.check();
}

namespace {

/// "256M", "2G"; a bare number is of MiB.
int64_t memory_size(const std::string& value) {
  std::string digits = value;
  int64_t unit = int64_t{1} << 20;
  if (!digits.empty() && (digits.back() == 'M' || digits.back() == 'G')) {
    if (digits.back() == 'G') unit <<= 10;
    digits.pop_back();
  }
  const auto count =
      parsed<int64_t>("memory", digits.empty() ? value : digits, "a whole number with M or G: 256M");
  if (count < 1 || count > (int64_t{1} << 20))
    fail("--memory = ", value, ". It must be 1 to 1048576, with M or G.");
  return count * unit;
}

}  // namespace

void apply_machine(const ParsedArguments& arguments) {
  if (arguments.has("threads")) {
    const int64_t count = arguments.integer("threads", 1);
    if (count < 1 || count > 256) fail("--threads = ", count, ". It must be 1 to 256.");
    set_threads(static_cast<int>(count));
  }
  const std::string device = arguments.get("device", "auto");
  default_device = device_named(device);
  if (const std::string idle = why_gpu_idle(); device == "auto" && !idle.empty())
    io::print_error(text("warning: device cpu, since ", idle, ". Use --device cpu to silence this.\n"));
  if (arguments.has("memory")) cap_memory(memory_size(arguments.get("memory")));
}

namespace {

/// Prints the positional arguments in the usage line as Command::positional has them.
class Usage : public CLI::Formatter {
  std::string make_option_usage(const CLI::Option* option) const override { return option->get_name(true); }
};

struct Parser {
  CLI::App app{"Transformers with every way of attending, trained from C++."};
  std::map<std::string, std::vector<std::string>> positional;
  std::map<std::string, std::map<std::string, std::vector<std::string>>> values;
  std::map<std::string, std::map<std::string, bool>> flags;
  std::map<std::string, CLI::App*> subcommands;
  bool version = false;

  /// Declares all commands, but options only for the one that was typed.
  explicit Parser(const std::string& typed) {
    app.name(program_name());
    app.formatter(std::make_shared<Usage>());
    // "translate" is a command and a preset: only the first argument is a command.
    app.require_subcommand(0, 1);
    app.set_help_flag("-h,--help", "show help");
    app.add_flag("--version", version, "print the version");
    app.footer(text(program_name(), " COMMAND --help, or ", program_name(),
                    " help COMMAND, shows the options of a command."));
    for (const Command& command : commands()) add(command, typed == command.name);
  }

  void add(const Command& command, bool with_options) {
    CLI::App* sub = app.add_subcommand(command.name, command.about);
    subcommands[command.name] = sub;
    if (!with_options) return;
    if (command.more != nullptr) sub->description(text(command.about, "\n\n", command.more()));
    sub->allow_extras();
    sub->set_help_flag("-h,--help", "show help");
    if (command.max_positional > 0)
      sub->add_option(command.positional, positional[command.name], command.positional_help)
          ->type_name("")
          ->expected(0, 1000000);
    std::set<std::string> taken{"help"};
    const auto option = [&](const std::string& names, const std::string& name, const std::string& help,
                            const std::string& type, const std::string& group) {
      if (!taken.insert(name).second) return;
      sub->add_option(names, values[command.name][name], help)
          ->type_name(type)
          ->group(group)
          ->expected(1)
          ->allow_extra_args(false)
          ->take_all();
    };
    for (const CommandOption& one : command.options) {
      const std::string dashed = "--" + std::string(one.name);
      if (*one.value == '\0') {
        if (taken.insert(one.name).second)
          sub->add_flag(dashed, flags[command.name][one.name], one.help)->disable_flag_override();
      } else {
        option(dashed, one.name, one.help, one.value, "Options");
      }
    }
    if (!command.settings) return;
    sub->footer(text("In brackets: what a setting is where neither the preset nor the file says it. ",
                     program_name(), " show PRESET lists all settings of a preset."));
    for (const CommandOption& one : options_beside_settings(command))
      option(text("--", one.name), one.name, one.help, one.value, "Options");
    for (const Setting& setting : settings()) {
      const std::string group = "Settings: " + setting.key.substr(0, setting.key.find('.'));
      option("--" + setting.option, setting.option, setting.help, setting.word ? "WORD" : "VALUE", group);
      if (!setting.brief.empty())
        option("--" + setting.brief, setting.brief, "short for --" + setting.option, "VALUE", group);
      option("--" + setting.key, setting.key, "", "VALUE", "");
    }
  }

  ParsedArguments parsed_arguments(const Command& command) {
    ParsedArguments arguments;
    arguments.command = command.name;
    arguments.positional = positional[command.name];
    for (auto& [name, list] : values[command.name]) {
      if (!list.empty()) arguments.options[name] = list;
    }
    for (auto& [name, on] : flags[command.name]) {
      if (on) arguments.options[name] = {};
    }
    return arguments;
  }
};

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  names.emplace_back("help");
  return names;
}

/// "Usage: heed list WHAT."
std::string usage_of(const Command& command) {
  return text("Usage: ", program_name(), " ", command.name,
              *command.positional != '\0' ? text(" ", command.positional) : std::string(), ".");
}

void refuse_extras(Parser& parser, const Command& command) {
  std::vector<std::string> known;
  for (const CLI::Option* option : parser.subcommands[command.name]->get_options()) {
    if (!option->get_lnames().empty()) known.push_back("--" + option->get_lnames()[0]);
  }
  for (const std::string& extra : parser.subcommands[command.name]->remaining()) {
    if (extra.starts_with("-")) {
      const std::string typed = extra.substr(0, extra.find('='));
      const std::string now = "--" + option_now(std::string_view(typed).substr(typed.find_first_not_of('-')));
      if (std::find(known.begin(), known.end(), now) != known.end())
        fail("option ", typed, " is called ", now, " now.");
      const std::string near = nearest(typed, known);
      fail("option ", extra, " is unknown.", near.empty() ? "" : " Did you mean " + near + "?", " ",
           program_name(), " ", command.name, " --help lists them.");
    }
    fail(program_name(), " ", command.name, ": unexpected argument '", extra, "'. ", usage_of(command));
  }
}

/// Several processes that do the same side by side would write into the same files.
void refuse_several(const Command& command) {
  const std::optional<LaunchInfo> started = launch_info();
  if (!started || command.several_processes) return;
  fail(program_name(), " ", command.name, " is the work of one process, but ", started->by, " started ",
       started->size, ". Start it without ", started->by, "; train and resume share their work.");
}

/// Several processes mostly fail alike, and one of them is to say it. mpirun ends them all with the first
/// that ends, so the others wait for that. Who is left after the wait has failed alone, or runs where nothing
/// ends it: the name to say it under.
std::string left_behind() {
  const std::optional<LaunchInfo> started = launch_info();
  if (!started || started->rank == 0) return "";
  std::this_thread::sleep_for(std::chrono::seconds(5));
  return text("process ", started->rank + 1, " of ", started->size, ": ");
}

/// Turns `heed help` and `heed help COMMAND` into `heed --help` and `heed COMMAND --help`; keeps other lines.
std::vector<char*> with_help_as_option(int argc, char** argv) {
  static char option[] = "--help";
  std::vector<char*> out(argv, argv + argc);
  if (argc < 2 || std::string_view(out[1]) != "help") return out;
  if (argc > 3)
    fail(program_name(), " help: unexpected argument '", std::string(out[3]), "'. Usage: ", program_name(),
         " help [COMMAND].");
  out.erase(out.begin() + 1);
  if (out.size() > 1 && std::string_view(out[1]) == "help") out.pop_back();
  out.push_back(option);
  return out;
}

/// Fails unless the first argument is a command or asks for help.
void check_command_name(const std::string& first) {
  if (first.starts_with('-')) {
    if (first == "-h" || first == "--help") return;
    const std::vector<std::string> known{"--version", "--help"};
    fail("option ", first, " is unknown here.", suggestion(first, known), " Options of a command follow it.");
  }
  const std::vector<std::string> known = command_names();
  if (std::find(known.begin(), known.end(), first) == known.end())
    fail("command '", first, "' is unknown.", suggestion(first, known));
}

/// Fails at a flag with a value: --resume=yes. Looks before CLI11 parses, whose error for it has the type of
/// other errors too.
void refuse_flag_values(const std::vector<std::string>& argv) {
  const std::span<const Command> all = commands();
  const auto command =
      std::find_if(all.begin(), all.end(), [&](const Command& one) { return argv[0] == one.name; });
  if (command == all.end()) return;
  for (const std::string& argument : argv) {
    if (argument == "--") return;  // only positional arguments follow
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) continue;
    for (const CommandOption& option : command->options) {
      if (*option.value == '\0' && argument.substr(0, equals) == text("--", option.name))
        fail("--", option.name, " takes no value. Write it alone, or leave it out.");
    }
  }
}

int run_command(const Command& command, const ParsedArguments& arguments) {
  const size_t count = arguments.positional.size();
  if (count > command.max_positional) {
    fail(program_name(), " ", command.name, ": unexpected argument '",
         arguments.positional[command.max_positional], "'. ", usage_of(command));
  }
  if (count < command.min_positional) {
    fail(program_name(), " ", command.name, " needs ", command.positional, ". ", program_name(), " ",
         command.name, " --help says more.");
  }
  refuse_several(command);
  return command.run(arguments);
}

int parse_and_run(int argc, char** raw, const std::vector<TrainCallback*>& callbacks) {
  if (argc < 2) {
    Parser parser("");
    io::print(parser.app.help());
    return 0;
  }
  const std::vector<std::string> argv(raw + 1, raw + argc);
  if (argv[0] == "--version") {  // before the parser is built, so that it answers at once
    io::print("heed " HEED_VERSION "\n");
    return 0;
  }
  check_command_name(argv[0]);
  refuse_flag_values(argv);
  Parser parser(argv[0]);
  try {
    parser.app.parse(argc, raw);
  } catch (const CLI::CallForHelp&) {
    io::print(parser.app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    fail(error.what(), ". ", program_name(), " ", argv[0], " --help lists the options.");
  }
  for (const Command& command : commands()) {
    if (!parser.app.got_subcommand(command.name)) continue;
    refuse_extras(parser, command);
    ParsedArguments arguments = parser.parsed_arguments(command);
    arguments.callbacks = callbacks;
    arguments.argv = argv;
    return run_command(command, arguments);
  }
  fail("no command is given.", suggestion("", command_names()));
}

}  // namespace

int run_program(int argc, char** argv, const std::vector<TrainCallback*>& callbacks) {
  const SettingsSourceScope source(SettingsSource::command_line);
  const DefaultDevice kept(default_device);  // --device is of this call alone
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is an error of the write, which names it
  std::signal(SIGPIPE, SIG_IGN);  // so is a reader who is gone: a run has work to save, whoever reads of it
  std::set_new_handler(make_room);
  set_program_path(argc > 0 ? argv[0] : nullptr);
  try {
    io::hold_standard_streams();
    std::vector<char*> line = with_help_as_option(argc, argv);
    const int code = parse_and_run(static_cast<int>(line.size()), line.data(), callbacks);
    io::flush_output();
    return code;
  } catch (const io::OutputClosed&) {
    return 128 + SIGPIPE;  // as a shell says of one that SIGPIPE has ended
  } catch (const Error& error) {
    io::print_error(text("error: ", left_behind(), error.what(), "\n"));
    return static_cast<int>(error.fault());
  } catch (const std::bad_alloc& error) {
    io::print_error(text("error: ", out_of_memory_text(error), "\n"));
    return static_cast<int>(Fault::memory);
  } catch (const std::exception& error) {
    io::print_error(text("error: ", error.what(), " (internal error; please report it)\n"));
    return static_cast<int>(Fault::internal);
  }
}

}  // namespace heed
