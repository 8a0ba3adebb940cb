# With HEED_UNITY several files of a folder are compiled as one, which reads their headers once: half of the time for what is
# grouped. Alone stay core/ (its kernels take their time for code, and tests link single objects of core/io), train/loop, which is
# edited most, and files whose local names occur in another file of their folder: renaming those is the other way to group them.
set(units_alone
    attention/spec.cpp attention/inspect/map_text.cpp
    attention/variants/local_p.cpp attention/variants/routing.cpp attention/variants/strided.cpp attention/variants/structured.cpp
    autograd/mixed_precision.cpp autograd/ops/linear.cpp autograd/ops/polynomial_attention.cpp
    data/formats/png.cpp data/formats/zip.cpp data/synthetic/pathfinder.cpp data/synthetic/pathfinder_brush.cpp
    data/synthetic/phrasebook/patterns_questions.cpp data/synthetic/phrasebook/sentence_patterns.cpp
    data/synthetic/rhymed_text.cpp data/text/unicode_words.cpp data/tokenizers/sentencepiece.cpp
    train/bench/ops_sequences.cpp train/bench/train.cpp train/metrics/chrf.cpp train/report/chart.cpp train/report/report.cpp
    train/tasks/recall.cpp train/tasks/lra/listops.cpp train/tasks/lra/pathfinder_images.cpp train/tasks/lra/retrieval.cpp
    train/tasks/lra/text.cpp)
set(files_per_unit 8)

# Groups the SOURCES of TARGET by folder.
function(heed_unity target sources)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}" "${source}")
    get_filename_component(folder "${name}" DIRECTORY)
    file(STRINGS "${source}" command REGEX "^int run\\(")  # each command has such a function of its own
    if(command OR name IN_LIST units_alone OR folder MATCHES "^(core|train/loop)(/|$)" OR NOT name MATCHES "[.]cpp$")
      continue()
    endif()
    string(MAKE_C_IDENTIFIER "${folder}" unit)
    math(EXPR number "0${count_${unit}} / ${files_per_unit}")
    math(EXPR count_${unit} "0${count_${unit}} + 1")
    set_property(SOURCE "${source}" PROPERTY UNITY_GROUP ${unit}_${number})
  endforeach()
endfunction()
