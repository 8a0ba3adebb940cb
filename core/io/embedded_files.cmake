# Writes the list of core/io/embedded_files.h: every preset, published result, table of words, script,
# modelling file and style sheet of the tree.
file(GLOB_RECURSE embedded_paths CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
     attention/*.css attention/*.js data/*.json data/*.tsv train/*.css train/*.js train/*.json train/*.py train/*.toml)
list(SORT embedded_paths)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${embedded_paths})
set(HEED_EMBEDDED "")
foreach(path IN LISTS embedded_paths)
  file(READ "${path}" content)
  if(path MATCHES "\\.(css|js)$")  # the comment that says what it is for stays out of pages
    string(FIND "${content}" "\n" end)
    math(EXPR begin "${end} + 1")
    string(SUBSTRING "${content}" ${begin} -1 content)
  endif()
  string(APPEND HEED_EMBEDDED "    {\"${path}\", R\"embedded(${content})embedded\"},\n")
endforeach()
configure_file(core/io/embedded_files.cpp.in "${PROJECT_BINARY_DIR}/embedded_files.cpp" @ONLY)
