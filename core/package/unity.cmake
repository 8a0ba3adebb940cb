# With HEED_UNITY several files of a folder are compiled as one, which reads their headers once. So files of a folder give what is
# local to them names of their own. Alone stay the kernels, which have options of their own; the trainer, which is edited most; and
# files of core/io of which tests link single objects.
set(units_alone train/loop/trainer.cpp)
set(linked_alone "core/io/(file_descriptor|number_text|gzip|hash|files|atomic_write|json|terminal)[.]cpp|core/(error|settings_in_errors)[.]cpp")
set(files_per_unit 24)

# Groups the SOURCES of TARGET by folder.
function(heed_unity target sources)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}" "${source}")
    get_filename_component(folder "${name}" DIRECTORY)
    if(name IN_LIST units_alone OR name MATCHES "${linked_alone}" OR NOT name MATCHES "[.]cpp$" OR folder MATCHES "^core/cuda")
      continue()
    endif()
    string(MAKE_C_IDENTIFIER "${folder}" unit)
    math(EXPR number "0${count_${unit}} / ${files_per_unit}")
    math(EXPR count_${unit} "0${count_${unit}} + 1")
    set_property(SOURCE "${source}" PROPERTY UNITY_GROUP ${unit}_${number})
  endforeach()
endfunction()
