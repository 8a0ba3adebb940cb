// Parses argv into ParsedArguments and runs the command that it names. The only file that includes CLI11.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <new>
#include <thread>

#include "heed/core/distributed/mpi.h"
#include "heed/core/io/files.h"
#include "heed/core/memory/heap_cap.h"
#include "heed/core/memory/storage.h"
#include "heed/core/settings_in_errors.h"
#include "heed/core/version.h"
#include "heed/nn/set_option.h"
#include "heed/train/commands/command.h"
#include "heed/train/config/config.h"
#include "heed/train/run/program_name.h"
#include "heed/train/run/renamed_settings.h"
#include "heed/train/session/setting_options.h"

namespace heed {
namespace {

/// A formatter that prints positional arguments in the usage line as Command::positional has them.
class Usage : public CLI::Formatter {
  std::string make_option_usage(const CLI::Option* option) const override { return option->get_name(true); }
  /// The help of an option stands at least two blanks behind its name, else on the next line.
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string out = CLI::Formatter::make_option(option, is_positional);
    const size_t help = get_column_width();
    if (out.size() > help && out[help - 1] == ' ' && out[help - 2] != ' ' && out[help] != ' ')
      out.replace(help - 1, 1, "\n" + std::string(help, ' '));
    return out;
  }
};

/// The parser of the program: it declares all commands, but options only of the one that was typed.
struct Parser {
  CLI::App app{"Transformers with every way of attending, trained from C++."};
  CLI::App* typed = nullptr;            // parser of the typed command; null: none was typed
  std::vector<std::string> positional;  // positional arguments of the typed command
  std::map<std::string, std::vector<std::string>> values;  // values of the typed command's options, by name
  std::map<std::string, bool> flags;                       // flags of the typed command, by name

  explicit Parser(const Command* command) {
    app.name(program_name());
    app.formatter(std::make_shared<Usage>());
    // "translate" is a command and a preset: only the first argument is taken as a command.
    app.require_subcommand(0, 1);
    app.set_help_flag("-h,--help", "show help");
    app.add_flag("--version")->description("print the version");
    app.footer(text(program_name(), " COMMAND --help, or ", program_name(),
                    " help COMMAND, shows the options of a command."));
    for (const Command& one : commands()) {
      CLI::App* sub = app.add_subcommand(one.name, one.about);
      if (command != nullptr && std::string_view(one.name) == command->name) typed = sub;
    }
    if (typed != nullptr) declare_options(*command);
  }

  void declare(const std::string& names, const std::string& name, const std::string& help,
               const std::string& type, const std::string& group) {
    if (values.contains(name) || flags.contains(name)) return;
    typed->add_option(names, values[name], help)
        ->type_name(type)
        ->group(group)
        ->expected(1)
        ->allow_extra_args(false)
        ->take_all();
  }

  void declare_options(const Command& command) {
    if (command.more != nullptr) typed->description(text(command.about, "\n\n", command.more()));
    typed->allow_extras();
    typed->set_help_flag("-h,--help", "show help");
    if (command.max_positional > 0)
      typed->add_option(command.positional, positional, command.positional_help)
          ->type_name("")
          ->expected(0, 1000000);
    for (const CommandOption& one : command.options) {
      const std::string dashed = "--" + std::string(one.name);
      if (*one.value != '\0')
        declare(dashed, one.name, one.help, one.value, "Options");
      else
        typed->add_flag(dashed, flags[one.name], one.help)->disable_flag_override();
    }
    if (!command.settings) return;
    typed->footer(text("In brackets: what a setting is where neither the preset nor the file says it. ",
                       program_name(), " show PRESET lists all settings of a preset."));
    for (const CommandOption& one : options_beside_settings(command))
      declare(text("--", one.name), one.name, one.help, one.value, "Options");
    for (const Setting& setting : settings()) {
      const std::string group = "Settings: " + setting.key.substr(0, setting.key.find('.'));
      declare("--" + setting.option, setting.option, setting.help, setting.word ? "WORD" : "VALUE", group);
      if (!setting.brief.empty())
        declare("--" + setting.brief, setting.brief, "short for --" + setting.option, "VALUE", group);
      declare("--" + setting.key, setting.key, "", "VALUE", "");
    }
  }

  ParsedArguments parsed_arguments(const Command& command) const {
    ParsedArguments arguments;
    arguments.command = command.name;
    arguments.positional = positional;
    for (const auto& [name, list] : values) {
      if (!list.empty()) arguments.options[name] = list;
    }
    for (const auto& [name, on] : flags) {
      if (on) arguments.options[name] = {};
    }
    return arguments;
  }
};

/// The command of a name; null where there is none.
const Command* command_named(const std::string& name) {
  for (const Command& one : commands()) {
    if (name == one.name) return &one;
  }
  return nullptr;
}

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

/// Fails at the first argument that the parser of the command does not know. `positional`: the arguments
/// before it that are no options.
void refuse_extras(const CLI::App& parser, const Command& command,
                   const std::vector<std::string>& positional) {
  std::vector<std::string> known;
  for (const CLI::Option* option : parser.get_options()) {
    if (!option->get_lnames().empty()) known.push_back("--" + option->get_lnames()[0]);
  }
  for (const std::string& extra : parser.remaining()) {
    if (extra.starts_with("-")) {
      const std::string typed = extra.substr(0, extra.find('='));
      const std::string present = option_now(std::string_view(typed).substr(typed.find_first_not_of('-')));
      const bool is_known = std::find(known.begin(), known.end(), "--" + present) != known.end();
      if (is_known && (command.takes_option == nullptr || command.takes_option(positional, present)))
        fail("option ", typed, " is called --", present, " now.");
      const std::string near = nearest(typed, known);
      fail("option ", extra, " is unknown.", near.empty() ? "" : " Did you mean " + near + "?", " ",
           program_name(), " ", command.name, " --help lists them.");
    }
    fail(program_name(), " ", command.name, ": unexpected argument '", extra, "'. ", usage_of(command));
  }
}

/// Fails where several processes were started for a command that is the work of one: all would write into the
/// same files.
void refuse_several(const Command& command) {
  const std::optional<LaunchInfo> started = launch_info();
  if (!started || command.several_processes) return;
  fail(program_name(), " ", command.name, " is the work of one process, but ", started->by, " started ",
       started->size, ". Start it without ", started->by, "; train and resume share their work.");
}

/// Which of several processes an error is of; empty for the first. Mostly all fail alike, and mpirun ends
/// them with the first that ends, so the others wait for that: only a process that has failed alone, or runs
/// where nothing ends it, reports its error too.
std::string failed_process() {
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
  known_word("command", first, command_names());
}

/// Fails at a flag with a value: --resume=yes. Runs before CLI11 parses, whose error for it cannot be told
/// from others by its type.
void refuse_flag_values(const std::vector<std::string>& argv, const Command& command) {
  for (const std::string& argument : argv) {
    if (argument == "--") return;  // only positional arguments follow
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) continue;
    for (const CommandOption& option : command.options) {
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
    fail(program_name(), " ", command.name, " needs ", command.positional, ": ", program_name(), " ",
         command.name, " --help says more.");
  }
  refuse_several(command);
  return command.run(arguments);
}

int parse_and_run(int argc, char** raw, const std::vector<TrainCallback*>& callbacks) {
  const std::vector<std::string> argv(raw + 1, raw + argc);
  if (argv.empty()) {
    io::print(Parser(nullptr).app.help());
    return 0;
  }
  if (argv[0] == "--version") {  // before the parser is built, so that it answers at once
    io::print("heed " HEED_VERSION "\n");
    return 0;
  }
  check_command_name(argv[0]);
  const Command* command = command_named(argv[0]);
  if (command != nullptr) refuse_flag_values(argv, *command);
  Parser parser(command);
  try {
    parser.app.parse(argc, raw);
  } catch (const CLI::CallForHelp&) {
    io::print(parser.app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    fail(error.what(), ". ", program_name(), " ", argv[0], " --help lists the options.");
  }
  if (command == nullptr) fail("no command is given.", suggestion("", command_names()));
  refuse_extras(*parser.typed, *command, parser.positional);
  ParsedArguments arguments = parser.parsed_arguments(*command);
  arguments.callbacks = callbacks;
  arguments.argv = argv;
  return run_command(*command, arguments);
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
    return 128 + SIGPIPE;  // the exit code that a shell gives to a program ended by SIGPIPE
  } catch (const Error& error) {
    io::print_error(text("error: ", failed_process(), error.what(), "\n"));
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
