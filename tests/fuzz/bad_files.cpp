// Checks heed's readers with thousands of damaged files (see reader_rules.h); the scorecard starts it.
//
//   bad_files checkpoint RUN FIRST COUNT     damaged files of the last checkpoint of a run
//   bad_files tokenizer - FIRST COUNT        damaged tokenizers in a checkpoint
//   bad_files KIND CORPUS FIRST COUNT        damaged data: idx gzip npy pairs config json
//
// Cases are numbered and the same on every machine. They run in subprocesses, so that a crash fails one case;
// the result is a line of JSON.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "heed/core/io/files.h"
#include "heed/core/io/gzip.h"
#include "heed/core/io/json.h"
#include "heed/core/io/npy.h"
#include "heed/core/io/safetensors.h"
#include "heed/core/random.h"
#include "heed/data/formats/idx.h"
#include "heed/data/text/parallel_text.h"
#include "heed/data/tokenizers/sentencepiece.h"
#include "heed/data/tokenizers/vocabulary.h"
#include "heed/tests/fuzz/mutate.h"
#include "heed/tests/fuzz/reader_rules.h"
#include "heed/tests/scratch.h"
#include "heed/train/optim/optimizer.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/session/loaded_run.h"

namespace heed {
namespace {

/// What is told of the cases; shared with the children.
struct Counts {
  int64_t next = 0, cases = 0, refused = 0, broken = 0, undetected = 0, flips = 0, crashes = 0;
  double slowest = 0;
  int64_t heap = 0;  // most beyond the input
  char first[600] = {};
};

void complain(Counts& counts, int64_t number, const std::string& what) {
  if (counts.first[0] == '\0')
    std::snprintf(counts.first, sizeof counts.first, "case %lld: %s", static_cast<long long>(number),
                  what.c_str());
}

/// Damage that must be found, or may be.
enum class Must { refuse, either };

void count(Counts& counts, int64_t number, std::string_view input, const law::Outcome& outcome, Must must) {
  ++counts.cases;
  counts.refused += outcome.accepted ? 0 : 1;
  counts.slowest = std::max(counts.slowest, outcome.seconds);
  counts.heap = std::max(counts.heap, outcome.heap - static_cast<int64_t>(input.size()));
  if (!outcome.broken.empty()) {
    ++counts.broken;
    complain(counts, number, outcome.broken + ": " + outcome.message);
  } else if (must == Must::refuse && outcome.accepted) {
    ++counts.undetected;
    complain(counts, number, "the damage was not found");
  }
}

void put(const Path& path, std::string_view bytes) {  // without the sync of io, which takes its time
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

Path fast_place() {
  return io::is_directory("/dev/shm") ? "/dev/shm" : std::filesystem::temp_directory_path();
}

/// A header that lies, in front of the numbers of a safetensors file.
std::string lying_header(const std::string& file, uint64_t number) {
  size_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(file[i]);
  std::string header = file.substr(8, length);
  const auto replace = [&](const std::string& from, const std::string& to) {
    const size_t at = header.find(from);
    if (at != std::string::npos) header.replace(at, from.size(), to);
  };
  const SafeTensors tensors = SafeTensors::parse(file, "good");
  const std::string name = tensors.entries()[number / 16 % tensors.entries().size()].name;
  const std::string quoted = "\"" + name + "\": {";
  const size_t entry = header.find(quoted);
  const std::string whole = header.substr(entry, header.find('}', entry) + 1 - entry);
  switch (number % 16) {
    case 0:
      replace(whole, whole + ", " + whole);
      break;  // one name twice
    case 1:
      replace(name, std::string(1, '\1') + name);
      break;  // names that are none
    case 2:
      replace(name, std::string(300, 'n'));
      break;
    case 3:
      replace("\"" + name + "\"", "\"\"");
      break;
    case 4:
      replace("\"" + name + "\"", "\"NaN\\u0000\"");
      break;
    case 5:
      replace("\"shape\": [", "\"shape\": [4294967296, 4294967296, ");
      break;  // products beyond 64 bits
    case 6:
      replace("\"shape\": [", "\"shape\": [0, 4611686018427387904, ");
      break;
    case 7:
      replace("\"shape\": [", "\"shape\": [-1, ");
      break;
    case 8:
      replace("\"data_offsets\": [0, ", "\"data_offsets\": [4, ");
      break;  // a hole
    case 9:
      replace("\"data_offsets\": [", "\"data_offsets\": [0, 0], \"x\": [");
      break;
    case 10:
      replace(whole, whole + ", \"again\"" + whole.substr(name.size() + 2));
      break;  // an overlap
    case 11:
      replace("\"F32\"", "\"F16\"");
      break;
    case 12:
      replace("\"shape\": [", "\"shape\": [1, 1, 1, 1, 1, 1, 1, ");
      break;
    case 13:
      replace("{", "{\"a\": " + std::string(100, '['));
      break;
    case 14:
      replace("\"data_offsets\": [", "\"data_offsets\": [1e300, ");
      break;
    default:
      header = mutate(header, {}, number).bytes;
      break;
  }
  length = header.size();
  if (number % 64 == 63) length = size_t{1} << number / 64 % 64;  // a length of its own
  std::string out;
  for (size_t shift = 0; shift < 64; shift += 8) out += static_cast<char>(length >> shift & 0xFF);
  return out + header + file.substr(static_cast<size_t>(tensors.entries().front().offset));
}

/// Cases over the files of a checkpoint: a flip among the numbers; any damage to any file; headers that lie
/// and tokenizers that are damaged under a manifest that fits.
class Checkpoints {
 public:
  explicit Checkpoints(const Path& run)
      : loaded_(load_run(run, {.checkpoint = "last"})),
        checkpoint_(open_checkpoint(run, "last")),
        optimizer_(*loaded_.model, {}),
        room_(fast_place()) {
    for (const auto& [name, bytes] : checkpoint_.files) {
      names_.push_back(name);
      files_.push_back({name, bytes});
      if (name.ends_with(".safetensors")) numbers_.push_back(name);
    }
    folder_ = write_checkpoint(room_ / "run", 7, files_);
    names_.push_back("MANIFEST.json");
  }

  void one(Counts& counts, int64_t case_number) {
    const auto number = static_cast<uint64_t>(case_number);
    switch (number % 4) {
      case 0: {
        const std::string& name = numbers_[number / 4 % numbers_.size()];
        const std::string& good = checkpoint_.file(name);
        const SafeTensors tensors = SafeTensors::parse(good, name);
        ++counts.flips;
        return damaged(
            counts, case_number, name,
            flip_bit(good, static_cast<size_t>(tensors.entries().front().offset), good.size(), number), true);
      }
      case 1:
      case 2: {
        const std::string& name = names_[number / 4 % names_.size()];
        return damaged(counts, case_number, name, mutate(io::read(folder_ / name), {}, number).bytes, false);
      }
      default:
        return checksummed(counts, case_number, number);
    }
  }

 private:
  void damaged(Counts& counts, int64_t number, const std::string& name, const std::string& bytes,
               bool tensor) {
    const std::string good = io::read(folder_ / name);
    put(folder_ / name, bytes);
    // A manifest that lies makes other files look damaged: then the checkpoint is what must be named.
    const std::string named = name == "MANIFEST.json" ? folder_.string() : name;
    const HeldFiles held = number / 4 % 2 == 0 ? HeldFiles::all : HeldFiles::all_but_tensors;
    const law::Outcome outcome =
        law::outcome_of(named, bytes, [&] { (void)open_checkpoint(room_ / "run", "last", held); },
                        {.heap = total() + (int64_t{64} << 20)});
    put(folder_ / name, good);
    // A manifest may be damaged in its blanks; any other file has a check sum.
    count(counts, number, bytes, outcome,
          bytes == good || name == "MANIFEST.json" ? Must::either : Must::refuse);
    if (tensor && outcome.message.find(", tensor ") == std::string::npos) {
      ++counts.undetected;
      complain(counts, number, "no tensor is named: " + outcome.message);
    }
  }

  void checksummed(Counts& counts, int64_t number, uint64_t random) {
    const size_t which = random / 4 % files_.size();
    std::vector<NamedBytes> files = files_;
    NamedBytes& file = files[which];
    const bool tensors = file.name.ends_with(".safetensors");
    file.bytes = tensors && random % 3 != 0 ? lying_header(file.bytes, random / 4)
                                            : mutate(file.bytes, {}, random).bytes;
    write_checkpoint(room_ / "checksummed", 7, files);
    const std::string name = file.name;
    const law::Outcome outcome =
        law::outcome_of(name, file.bytes,
                        [&] {
                          const Checkpoint read = open_checkpoint(room_ / "checksummed");
                          if (name == "model.safetensors") load_bytes(*loaded_.model, read.file(name), name);
                          if (name == "optim.safetensors") optimizer_.load(read.file(name));
                          if (name.starts_with("tokenizer.")) {
                            (void)load_tokenizer(name.substr(name.rfind('.') + 1), read.file(name), name);
                          }
                          if (name == "state.json") parse_json(read.file(name), name);
                        },
                        {.heap = total() + (int64_t{64} << 20),
                         .per_byte = name.starts_with("tokenizer.") ? 100 : 0,
                         .numeric = name == "model.safetensors"});
    count(counts, number, file.bytes, outcome, Must::either);
  }

  int64_t total() const {
    int64_t bytes = 0;
    for (const NamedBytes& file : files_) bytes += static_cast<int64_t>(file.bytes.size());
    return bytes;
  }

  LoadedRun loaded_;
  Checkpoint checkpoint_;
  Optimizer optimizer_;
  Scratch room_;
  Path folder_;
  std::vector<std::string> names_, numbers_;
  std::vector<NamedBytes> files_;
};

/// Cases over three tokenizers in a checkpoint, each of which must be refused; the same bytes are then read
/// without the hash, where they may pass or not.
class Tokenizers {
 public:
  Tokenizers() : room_(fast_place()) {
    const std::vector<std::string_view> lines{"the old man smiled .", "the cat sat on the table .",
                                              "l'uomo e il gatto", "il gatto vecchio sorrise"};
    const auto add = [&](const std::unique_ptr<Tokenizer>& tokenizer) {
      files_.push_back({"tokenizer.source." + tokenizer->kind(), tokenizer->save()});
    };
    add(make_word_tokenizer(Vocabulary::train(lines, {.min_frequency = 1})));
    add(make_character_tokenizer("the old man smiled, \xC3\xA8 \xE2\x82\xAC\n"));
#if HEED_HAS_SENTENCEPIECE
    add(train_sentencepiece(lines, {.size = 40, .threads = 1}));
#endif
    folder_ = write_checkpoint(room_ / "run", 7, files_);
  }

  void one(Counts& counts, int64_t case_number) {
    const auto number = static_cast<uint64_t>(case_number);
    const NamedBytes& file = files_[number % files_.size()];
    std::string bytes = mutate(file.bytes, {}, number).bytes;
    if (bytes == file.bytes) bytes += '?';
    put(folder_ / file.name, bytes);
    const law::Outcome outcome =
        law::outcome_of(file.name, bytes, [&] { (void)open_checkpoint(room_ / "run"); });
    put(folder_ / file.name, file.bytes);
    count(counts, case_number, bytes, outcome, bytes == file.bytes ? Must::either : Must::refuse);
    const std::string kind = file.name.substr(file.name.rfind('.') + 1);
    const law::Outcome bare = law::outcome_of(
        file.name, bytes, [&] { (void)load_tokenizer(kind, bytes, file.name); }, {.per_byte = 100});
    if (bare.broken.empty()) return;
    ++counts.broken;
    complain(counts, case_number, bare.broken + ": " + bare.message);
  }

 private:
  Scratch room_;
  Path folder_;
  std::vector<NamedBytes> files_;
};

/// Cases over data files and configurations, from a corpus of good and odd ones.
class Data {
 public:
  Data(std::string kind, const Path& corpus) : kind_(std::move(kind)) {
    for (const Path& name : io::list(corpus)) corpus_.push_back(io::read(corpus / name));
    if (corpus_.empty()) fail("bad_files: ", corpus, " holds nothing.");
  }

  void one(Counts& counts, int64_t number) {
    const std::string& base = corpus_[static_cast<size_t>(number) % corpus_.size()];
    const std::string bytes = mutate(base, corpus_, static_cast<uint64_t>(number)).bytes;
    const Path path = law::planted(bytes, ending());
    const law::Bounds bounds{.per_byte = is_gzip(bytes) ? 3100 : 100, .usage = kind_ == "config"};
    count(counts, number, bytes,
          law::outcome_of(
              path.string(), bytes, [&] { read(path); }, bounds),
          Must::either);
  }

 private:
  std::string ending() const {
    if (kind_ == "pairs") return ".tsv";
    if (kind_ == "config") return ".toml";
    return "." + kind_;
  }
  void read(const Path& path) const {
    if (kind_ == "idx") (void)read_idx_images(path);
    if (kind_ == "gzip") (void)inflate_text(io::read(path), io::text_cap, path.string());
    if (kind_ == "npy") (void)read_npy(path);
    if (kind_ == "pairs") (void)read_pairs(path);
    if (kind_ == "config") (void)make_config(path.string());
    if (kind_ == "json") (void)parse_json(io::read(path), path.string());
  }

  std::string kind_;
  std::vector<std::string> corpus_;
};

/// Runs the cases in children; one that crashes is counted and the next child goes on behind its case.
template <class Cases>
int64_t in_children(Cases& cases, Counts& counts, int64_t end) {
  constexpr int64_t a_child = 2000;
  int64_t peak_kib = 0;
  while (counts.next < end) {
    const int64_t until = std::min(end, counts.next + a_child);
    const pid_t child = ::fork();
    if (child < 0) fail(Fault::memory, "bad_files: no child can be started.");
    if (child == 0) {
      ::alarm(300);
      for (; counts.next < until; ++counts.next) cases.one(counts, counts.next);
      std::_Exit(0);  // what the parent made is the parent's to clear away
    }
    int status = 0;
    rusage used{};
    while (::wait4(child, &status, 0, &used) < 0) {
    }
    peak_kib = std::max<int64_t>(peak_kib, used.ru_maxrss);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    ++counts.crashes;
    complain(counts, counts.next, text("the reader ended with status ", status));
    ++counts.next;
  }
  return peak_kib;
}

int run(const std::vector<std::string>& words) {
  const std::string kind = words.at(0);
  void* shared = ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail(Fault::memory, "bad_files: no shared memory.");
  Counts& counts = *new (shared) Counts;
  counts.next = std::stoll(words.at(2));
  const int64_t end = counts.next + std::stoll(words.at(3));
  int64_t peak_kib = 0;
  law::planted("", ".made");  // the folder is the parent's, and goes with it
  if (kind == "checkpoint") {
    Checkpoints cases(words.at(1));
    peak_kib = in_children(cases, counts, end);
  } else if (kind == "tokenizer") {
    Tokenizers cases;
    peak_kib = in_children(cases, counts, end);
  } else {
    Data cases(kind, words.at(1));
    peak_kib = in_children(cases, counts, end);
  }
  const Json found = Json::object({{"cases", counts.cases},
                                   {"refused", counts.refused},
                                   {"broken", counts.broken},
                                   {"undetected", counts.undetected},
                                   {"flips", counts.flips},
                                   {"crashes", counts.crashes},
                                   {"slowest", counts.slowest},
                                   {"heap", counts.heap},
                                   {"peak_kib", peak_kib},
                                   {"first", Json(shown(counts.first, 500))}});
  std::printf("%s\n", found.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace heed

int main(int count, char** words) {
  if (count != 5) {
    std::fprintf(stderr, "bad_files KIND PLACE FIRST COUNT\n");
    return 2;
  }
  try {
    return heed::run({words + 1, words + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
