# The API reference by Doxygen: cmake --build BUILD --target api_reference. docs/reference/api.md says what is in it.
set(api_folder "${PROJECT_BINARY_DIR}/api_reference")
set(api_headers ${public_headers})  # of heed_public_headers()
list(JOIN internal_rooms "|" rooms)
list(FILTER api_headers EXCLUDE REGEX "^(${rooms})/")  # installed since a public header includes them, but not public
list(APPEND api_headers ${public_headers_of_internal_rooms})
list(REMOVE_ITEM api_headers ${internal_headers})
list(REMOVE_DUPLICATES api_headers)
list(TRANSFORM api_headers REPLACE "(.+)" "\"${HEED_INCLUDE}/heed/\\1\"")
list(JOIN api_headers " \\\n    " api_input)
string(APPEND api_input " \\\n    \"${PROJECT_SOURCE_DIR}/docs/reference/namespaces.dox\"")
configure_file(docs/reference/Doxyfile.in "${api_folder}/Doxyfile" @ONLY)
find_program(HEED_DOXYGEN doxygen)
if(HEED_DOXYGEN)
  add_custom_target(api_reference COMMAND "${HEED_DOXYGEN}" "${api_folder}/Doxyfile" VERBATIM
                    COMMENT "API reference: ${api_folder}/html/index.html")
else()
  add_custom_target(api_reference COMMAND ${CMAKE_COMMAND} -E echo "The API reference needs Doxygen (Debian: doxygen)."
                    COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
endif()
