# With HEED_UNITY several files of a folder are compiled as one, which reads their headers once: half of the time for what is
# grouped. Alone stay core/ (its kernels take their time for code, and tests link single objects of core/io), train/loop, which is
# edited most, and files whose local names occur in another file of their folder: renaming those is the other way to group them.
set(units_alone train/loop/trainer.cpp)
set(files_per_unit 24)

# Groups the SOURCES of TARGET by folder.
function(heed_unity target sources)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}" "${source}")
    get_filename_component(folder "${name}" DIRECTORY)
    if(name IN_LIST units_alone OR folder MATCHES "^core(/|$)" OR NOT name MATCHES "[.]cpp$")
      continue()
    endif()
    string(MAKE_C_IDENTIFIER "${folder}" unit)
    math(EXPR number "0${count_${unit}} / ${files_per_unit}")
    math(EXPR count_${unit} "0${count_${unit}} + 1")
    set_property(SOURCE "${source}" PROPERTY UNITY_GROUP ${unit}_${number})
  endforeach()
endfunction()
