# Third-party libraries: the system's packages first, a pinned source second.

find_package(Threads REQUIRED)
find_package(TBB CONFIG REQUIRED)

# mimalloc is built from source into libpozor, without its malloc override: the packaged shared
# library would replace the malloc of every program that links Pozor.
set(POZOR_ALLOCATOR)  # what a test of the engine links beside it
set(POZOR_MIMALLOC_OBJECTS)
if(POZOR_USE_MIMALLOC AND NOT POZOR_MIMALLOC_SOURCE)
  file(GLOB candidates "${PROJECT_SOURCE_DIR}/build/deps/mimalloc-*")
  if(candidates)
    list(GET candidates -1 POZOR_MIMALLOC_SOURCE)
  else()
    message(STATUS "mimalloc: no source tree (tools/setup.sh fetches one); using the C library's malloc")
    set(POZOR_USE_MIMALLOC OFF)
  endif()
endif()
if(POZOR_USE_MIMALLOC)
  message(STATUS "mimalloc: ${POZOR_MIMALLOC_SOURCE}")
  get_filename_component(mimalloc_VERSION "${POZOR_MIMALLOC_SOURCE}" NAME)
  string(REPLACE "mimalloc-" "" mimalloc_VERSION "${mimalloc_VERSION}")
  add_library(pozor_mimalloc OBJECT "${POZOR_MIMALLOC_SOURCE}/src/static.c")
  target_include_directories(pozor_mimalloc SYSTEM PUBLIC "${POZOR_MIMALLOC_SOURCE}/include")
  target_compile_definitions(pozor_mimalloc PRIVATE MI_STATIC_LIB)
  target_compile_options(pozor_mimalloc PRIVATE -w -O2 -ftls-model=initial-exec)
  set_target_properties(pozor_mimalloc PROPERTIES
    POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
  set(POZOR_ALLOCATOR pozor_mimalloc)
  set(POZOR_MIMALLOC_OBJECTS $<TARGET_OBJECTS:pozor_mimalloc>)
endif()
find_package(simdjson CONFIG REQUIRED)
# PCRE2 brings no CMake package on Debian; its library needs no more than its name.
find_library(POZOR_PCRE2_LIBRARY pcre2-8 REQUIRED)
find_path(POZOR_PCRE2_INCLUDE pcre2.h REQUIRED)
# xxHash is compiled in from its header.
find_path(POZOR_XXHASH_INCLUDE xxhash.h REQUIRED)
set(POZOR_PCRE2 $<BUILD_INTERFACE:${POZOR_PCRE2_LIBRARY}> $<INSTALL_INTERFACE:pcre2-8>)
# protozero is headers only.
find_path(POZOR_PROTOZERO_INCLUDE protozero/pbf_reader.hpp REQUIRED)

# Highway >= 1.2: an installed one, a source tree (POZOR_HIGHWAY_SOURCE or what tools/setup.sh
# unpacked), else the release archive pinned by hash. Built from source, it is no library of its
# own: its few objects become part of libpozor (POZOR_HIGHWAY_OBJECTS), so that an installed Pozor
# does not ask for it.
set(POZOR_HIGHWAY_VERSION 1.2.0)
find_package(hwy ${POZOR_HIGHWAY_VERSION} CONFIG QUIET)
if(hwy_FOUND)
  set(POZOR_HIGHWAY_LIBRARY hwy::hwy)
  set(POZOR_HIGHWAY_OBJECTS)
  message(STATUS "Highway ${hwy_VERSION}: ${hwy_DIR}")
else()
  if(NOT POZOR_HIGHWAY_SOURCE)
    file(GLOB candidates "${PROJECT_SOURCE_DIR}/build/deps/highway-*")
    if(candidates)
      list(GET candidates -1 POZOR_HIGHWAY_SOURCE)
    endif()
  endif()
  foreach(part TESTS EXAMPLES CONTRIB INSTALL)
    set(HWY_ENABLE_${part} OFF CACHE BOOL "" FORCE)
  endforeach()
  set(HWY_FORCE_STATIC_LIBS ON CACHE BOOL "" FORCE)
  if(POZOR_HIGHWAY_SOURCE)
    add_subdirectory("${POZOR_HIGHWAY_SOURCE}" "${PROJECT_BINARY_DIR}/highway" EXCLUDE_FROM_ALL)
    message(STATUS "Highway: ${POZOR_HIGHWAY_SOURCE}")
  else()
    message(STATUS "Highway: downloading release ${POZOR_HIGHWAY_VERSION}")
    include(FetchContent)
    FetchContent_Declare(highway
      URL https://github.com/google/highway/releases/download/${POZOR_HIGHWAY_VERSION}/highway-${POZOR_HIGHWAY_VERSION}.tar.gz
      URL_HASH SHA256=7e0be78b8318e8bdbf6fa545d2ecb4c90f947df03f7aadc42c1967f019e63343
      SOURCE_DIR "${PROJECT_BINARY_DIR}/highway-src")
    FetchContent_GetProperties(highway)
    if(NOT highway_POPULATED)
      FetchContent_Populate(highway)
      add_subdirectory("${highway_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/highway" EXCLUDE_FROM_ALL)
    endif()
  endif()
  if(NOT TARGET hwy::hwy)
    add_library(hwy::hwy ALIAS hwy)
  endif()
  set_target_properties(hwy PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
  set(POZOR_HIGHWAY_LIBRARY)
  set(POZOR_HIGHWAY_OBJECTS $<TARGET_OBJECTS:hwy>)
endif()
