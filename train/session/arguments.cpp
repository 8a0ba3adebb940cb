// Reads values out of parsed arguments; the options that several commands share.
#include "heed/train/session/arguments.h"

#include <algorithm>
#include <charconv>

#include "heed/core/gpu_info.h"
#include "heed/core/io/files.h"
#include "heed/core/memory/heap_cap.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/nn/set_option.h"
#include "heed/train/run/program_name.h"

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

int64_t ParsedArguments::integer(const std::string& name, int64_t otherwise, int64_t min, int64_t max) const {
  if (!has(name)) return otherwise;
  const auto out = parsed<int64_t>(name, get(name), "a whole number");
  if (out >= min && out <= max) return out;
  fail("--", name, " = ", out, ". It must be ",
       max >= max_integer && out < min ? text("at least ", min) : text(min, " to ", max), ".");
}

double ParsedArguments::number(const std::string& name, double otherwise) const {
  return has(name) ? parsed<double>(name, get(name), "a number") : otherwise;
}

std::string ParsedArguments::word(const std::string& name, const std::vector<std::string>& words,
                                  const std::string& otherwise) const {
  return has(name) ? known_word("--" + name, get(name), words) : otherwise;
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

std::string known_word(const std::string& where, const std::string& word,
                       const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), word) == words.end())
    fail(where, " '", shown(word), "' is unknown.", suggestion(word, words));
  return word;
}

std::vector<CommandOption> with_machine_options(std::vector<CommandOption> options) {
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

namespace {

/// Parses a size in bytes: "256M", "2G"; a number alone is in MiB.
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
    set_threads(static_cast<int>(arguments.integer("threads", 1, 1, 256)));
  }
  const std::string device = arguments.get("device", "auto");
  default_device = device_named(device);
  if (const std::string idle = why_gpu_idle(); device == "auto" && !idle.empty())
    io::print_error(text("warning: device cpu, since ", idle, ". Use --device cpu to silence this.\n"));
  if (arguments.has("memory")) cap_memory(memory_size(arguments.get("memory")));
}

std::vector<std::string> machine_options(const ParsedArguments& arguments) {
  std::vector<std::string> out;
  for (const CommandOption& option : with_machine_options({})) {
    if (arguments.has(option.name))
      out.insert(out.end(), {text("--", option.name), arguments.get(option.name)});
  }
  return out;
}

std::string shell_word(std::string_view word) {
  const bool plain =
      !word.empty() && word.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/"
                           "@%") == std::string_view::npos;
  if (plain) return std::string(word);
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace heed
