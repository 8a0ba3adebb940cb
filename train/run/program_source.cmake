# Writes OUT, the definitions of train/run/program_source.h, when a source has changed. FILES is a list of source paths below ROOT, one a line.
cmake_minimum_required(VERSION 3.25)
file(STRINGS "${FILES}" names)
set(sums "")
foreach(name IN LISTS names)
  if(EXISTS "${ROOT}/${name}")
    file(SHA256 "${ROOT}/${name}" sum)
    string(APPEND sums "${name} ${sum}\n")
  endif()
endforeach()
string(SHA256 hash "${sums}")
string(SUBSTRING "${hash}" 0 12 hash)

set(commit unknown)
find_program(git git)
if(git)
  execute_process(COMMAND ${git} -C "${ROOT}" rev-parse --show-prefix OUTPUT_VARIABLE below ERROR_QUIET RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed EQUAL 0 AND below STREQUAL "")  # else the checkout is of somebody who has a copy of Heed in it
    execute_process(COMMAND ${git} -C "${ROOT}" describe --always --dirty --abbrev=12 OUTPUT_VARIABLE described ERROR_QUIET RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(failed EQUAL 0 AND described MATCHES "^[A-Za-z0-9._/+-]+$")
      set(commit "${described}")
    endif()
  endif()
endif()
file(WRITE "${OUT}" "// Written by train/run/program_source.cmake.
#include \"heed/train/run/program_source.h\"

namespace heed {
const std::string_view source_hash = \"${hash}\";
const std::string_view source_commit = \"${commit}\";
}  // namespace heed
")
