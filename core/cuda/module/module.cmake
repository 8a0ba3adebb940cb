# HEED_CUDA_MODULE: the CUDA kernels become a shared object that the program opens where there is a GPU. From here on it is OFF where
# there are no CUDA kernels, or where they are linked in.
if(HEED_CUDA_MODULE AND NOT HEED_CUDA_BUILD)
  set(HEED_CUDA_MODULE OFF)
elseif(HEED_CUDA_MODULE)
  if(HEED_CUDA_EMULATED AND HEED_TESTS)
    message(FATAL_ERROR "HEED_CUDA_MODULE=ON with HEED_CUDA=EMULATED is without tests, which call the emulated device itself: set HEED_TESTS=OFF.")
  elseif(CMAKE_EXECUTABLE_FORMAT STREQUAL "ELF" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    string(APPEND cuda_words ", which are a module")
  else()
    set(HEED_CUDA_MODULE OFF)
    message(STATUS "the CUDA kernels are linked in: modules of them are for ELF and x86-64 alone")
  endif()
endif()
set(module_folder "${CMAKE_INSTALL_LIBDIR}/heed")  # below the prefix
file(RELATIVE_PATH module_from_program "/${CMAKE_INSTALL_BINDIR}" "/${module_folder}")
set(links_script "${CMAKE_CURRENT_LIST_DIR}/links.sh")

# heed_module(NAME OBJECTS library HOST libraries... [HOST_FILES objects...]) makes
# - NAME: a shared object of the object library OBJECTS, to be opened by programs;
# - the object ${NAME_host_object}, by the target NAME_links: programs made of the objects of HOST and of HOST_FILES link it too.
# These programs export their symbols to NAME: they are linked with -rdynamic.
function(heed_module name)
  cmake_parse_arguments(PARSE_ARGV 1 module "" "OBJECTS" "HOST;HOST_FILES")
  # CMake 3.25 may count the precompiled header among the objects.
  list(TRANSFORM module_HOST REPLACE "(.+)" "$<FILTER:$<TARGET_OBJECTS:\\1>,EXCLUDE,[.]gch$>" OUTPUT_VARIABLE host)
  list(APPEND host ${module_HOST_FILES})
  set(links "${CMAKE_CURRENT_BINARY_DIR}/${name}_links")
  set(quoted "\"$<JOIN:$<TARGET_OBJECTS:${module_OBJECTS}>,\"\n\">\"\n")
  file(GENERATE OUTPUT "${links}.module" CONTENT "${quoted}")
  set(quoted "\"$<JOIN:${host},\"\n\">\"\n")
  file(GENERATE OUTPUT "${links}.host" CONTENT "${quoted}")
  add_custom_command(OUTPUT "${links}_host.o" "${links}_module.o" VERBATIM
    COMMAND sh "${links_script}" "${CMAKE_NM}" "${CMAKE_CXX_COMPILER}" "${PROJECT_VERSION}" "${links}.module" "${links}.host" "${links}"
    DEPENDS "${links_script}" "${links}.module" "${links}.host" $<TARGET_OBJECTS:${module_OBJECTS}> ${host}
    COMMENT "Linking the program and ${name} by name")
  set_source_files_properties("${links}_host.o" "${links}_module.o" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  add_custom_target(${name}_links DEPENDS "${links}_host.o" "${links}_module.o")
  add_library(${name} MODULE $<TARGET_OBJECTS:${module_OBJECTS}> "${links}_module.o")
  add_dependencies(${name} ${name}_links)
  set_target_properties(${name} PROPERTIES PREFIX "" LINKER_LANGUAGE CXX)
  # What it calls of itself it finds in itself; the runtime of CUDA in it is nobody else's.
  target_link_options(${name} PRIVATE -Wl,-Bsymbolic-functions -Wl,--exclude-libs,ALL ${sanitize})
  set(${name}_host_object "${links}_host.o" PARENT_SCOPE)
endfunction()
