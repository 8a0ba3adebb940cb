# The kernels of the CPU, compiled once for each Isa of core/isa.h. An inline function or template that two files share is
# one function after linking: a copy with AVX-512 in it could end up in the program of an older CPU. So the copies of each
# Isa are first joined into one object in which only the kernels K::cpu<isa> keep their names.
set(HEED_ALL_ISAS 0)
if(HEED_NATIVE OR HEED_SANITIZE OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" OR NOT CMAKE_OBJCOPY)
  return()
endif()
include(CheckLinkerFlag)
check_linker_flag(CXX "-r;-nostdlib;-Wl,--force-group-allocation" HEED_HAS_GROUP_ALLOCATION)
if(NOT HEED_HAS_GROUP_ALLOCATION)
  message(STATUS "this linker cannot keep the kernels of each Isa apart: they are compiled for this machine (HEED_NATIVE)")
  set(HEED_NATIVE ON)
  return()
endif()
set(HEED_ALL_ISAS 1)
set(isa_number_avx2 1)
set(isa_number_avx512 2)
set(isa_flags_avx2 -march=x86-64-v3)
set(isa_flags_avx512 -march=x86-64-v4)

set(HEED_ISA_OBJECTS "")
function(heed_kernels_for isa sources flags)
  set(target heed_kernels_${isa})
  add_library(${target} OBJECT ${sources})
  target_link_libraries(${target} PRIVATE heed_settings)
  target_compile_options(${target} PRIVATE ${flags} ${isa_flags_${isa}} -fno-gnu-unique)  # unique names cannot be made local
  target_compile_definitions(${target} PRIVATE HEED_ISA=${isa})
  set(joined "${PROJECT_BINARY_DIR}/kernels_${isa}.o")
  add_custom_command(OUTPUT "${joined}" VERBATIM COMMAND_EXPAND_LISTS
    COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -Wl,--force-group-allocation -o "${joined}.all" $<TARGET_OBJECTS:${target}>
    COMMAND ${CMAKE_OBJCOPY} --wildcard "--keep-global-symbol=*3cpuILNS_3IsaE${isa_number_${isa}}EE*" "${joined}.all" "${joined}"
    DEPENDS $<TARGET_OBJECTS:${target}> COMMENT "Joining the kernels for ${isa}")
  set_source_files_properties("${joined}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  add_custom_target(${target}_joined DEPENDS "${joined}")
  set(HEED_ISA_OBJECTS ${HEED_ISA_OBJECTS} "${joined}" PARENT_SCOPE)
endfunction()
