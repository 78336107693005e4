# Compile options that every target of the project shares, and the precompiled header that every library reuses.
add_library(hlorun_options INTERFACE)
target_compile_features(hlorun_options INTERFACE cxx_std_20)
target_compile_options(hlorun_options INTERFACE -Wall -Wextra -Wpedantic -Werror -fPIC)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(hlorun_options INTERFACE -fpch-preprocess)  # ccache
endif()
target_include_directories(hlorun_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}
                           ${PROJECT_SOURCE_DIR}/driver/include)
if(HLORUN_SANITIZE)
  target_compile_options(hlorun_options INTERFACE -fsanitize=${HLORUN_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(hlorun_options INTERFACE -fsanitize=${HLORUN_SANITIZE})
  target_sources(hlorun_options INTERFACE
                 $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:${CMAKE_CURRENT_LIST_DIR}/sanitizer_defaults.cc>)
endif()

if(HLORUN_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    message(FATAL_ERROR "HLORUN_FUZZ needs libFuzzer: configure with -DCMAKE_CXX_COMPILER=clang++-15")
  endif()
  target_compile_options(hlorun_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# hlorun_library(name SOURCES ... [LINK ...]): the static library of one folder.
function(hlorun_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC hlorun_options ${ARG_LINK})
  if(name STREQUAL "hlorun_hlo")
    target_precompile_headers(${name} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/precompiled.h)
  else()
    target_precompile_headers(${name} REUSE_FROM hlorun_hlo)
  endif()
endfunction()

# hlorun_regex_sources(FILE...): of the calling folder. GCC 12 takes std::regex under a sanitizer for uninitialised memory.
function(hlorun_regex_sources)
  if(HLORUN_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -Wno-maybe-uninitialized)
  endif()
endfunction()
