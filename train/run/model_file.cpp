// The table of the kinds of files.
#include "heed/train/run/model_file.h"

#include <cstring>

#include "heed/core/io/files.h"
#include "heed/train/run/llama2_c_file.h"
#include "heed/train/run/llama_gguf.h"
#include "heed/train/run/llm_c_file.h"
#include "heed/train/run/mingpt_file.h"
#include "heed/train/run/nanogpt_file.h"

namespace heed {
namespace {

/// Whether the bytes begin with this integer, little-endian.
bool begins_with(std::string_view bytes, int32_t mark) {
  return bytes.size() >= sizeof mark && std::memcmp(bytes.data(), &mark, sizeof mark) == 0;
}

/// A kind of file: how it begins, and what reads it.
struct ModelFileKind {
  const char* beginning;  ///< for errors: "GGUF (a LLaMA of llama.cpp)"
  bool (*is_one)(std::string_view bytes);
  ImportedModel (*read)(std::string bytes, const Path& path);
};

/// The kinds. The last one has no mark, so it is tried last.
constexpr ModelFileKind kinds[] = {
    {"GGUF (a LLaMA for llama.cpp)", [](std::string_view bytes) { return bytes.starts_with("GGUF"); },
     [](std::string bytes, const Path& path) {
       return llama_model(GgufFile::parse(std::move(bytes), path.string()));
     }},
    {"the integer 20240326 (a GPT-2 of llm.c)",
     [](std::string_view bytes) { return begins_with(bytes, llm_c_magic); },
     [](std::string bytes, const Path& path) { return read_llm_c(bytes, path.string()); }},
    {"PK, as a zip archive does (a GPT-2 of nanoGPT, saved by PyTorch)",
     [](std::string_view bytes) { return bytes.starts_with("PK\x03\x04"); },
     [](std::string bytes, const Path& path) { return read_nanogpt(bytes, path); }},
    {"{ (a minGPT in JSON)", [](std::string_view bytes) { return bytes.starts_with("{"); },
     [](std::string bytes, const Path& path) { return read_mingpt(bytes, path.string()); }},
    {"the integer 0x616b3432, or seven sizes (a LLaMA of llama2.c)",
     [](std::string_view bytes) {
       return begins_with(bytes, llama2_c_magic) || is_llama2_c_without_mark(bytes);
     },
     [](std::string bytes, const Path& path) { return read_llama2_c(bytes, path); }},
};

}  // namespace

ImportedModel read_model_file(const Path& path) {
  std::string bytes = io::read(path);
  std::string known;
  for (const ModelFileKind& kind : kinds) {
    if (kind.is_one(bytes)) return kind.read(std::move(bytes), path);
    known += text(known.empty() ? "" : "; ", kind.beginning);
  }
  fail(Fault::data, path, " begins like no model file that can be read. These begin with: ", known,
       ". Give such a file, or the folder of a GPT-2, LLaMA, BERT or Marian.");
}

}  // namespace heed
