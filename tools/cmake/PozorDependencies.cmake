# Third-party libraries: the system's packages first, a pinned source second.

find_package(Threads REQUIRED)
find_package(TBB CONFIG REQUIRED)
if(POZOR_USE_MIMALLOC)
  find_package(mimalloc CONFIG REQUIRED)
endif()
find_package(simdjson CONFIG REQUIRED)

# Highway >= 1.2: an installed one, a source tree (POZOR_HIGHWAY_SOURCE or what tools/setup.sh
# unpacked), else the release archive pinned by hash.
set(POZOR_HIGHWAY_VERSION 1.2.0)
find_package(hwy ${POZOR_HIGHWAY_VERSION} CONFIG QUIET)
if(NOT hwy_FOUND)
  if(NOT POZOR_HIGHWAY_SOURCE)
    file(GLOB candidates "${PROJECT_SOURCE_DIR}/build/deps/highway-*")
    if(candidates)
      list(GET candidates -1 POZOR_HIGHWAY_SOURCE)
    endif()
  endif()
  set(HWY_ENABLE_TESTS OFF CACHE BOOL "" FORCE)
  set(HWY_ENABLE_EXAMPLES OFF CACHE BOOL "" FORCE)
  set(HWY_ENABLE_CONTRIB OFF CACHE BOOL "" FORCE)
  set(HWY_ENABLE_INSTALL OFF CACHE BOOL "" FORCE)
  if(POZOR_HIGHWAY_SOURCE)
    add_subdirectory("${POZOR_HIGHWAY_SOURCE}" "${PROJECT_BINARY_DIR}/highway" EXCLUDE_FROM_ALL)
  else()
    include(FetchContent)
    FetchContent_Declare(highway
      URL https://github.com/google/highway/releases/download/1.2.0/highway-1.2.0.tar.gz
      URL_HASH SHA256=7e0be78b8318e8bdbf6fa545d2ecb4c90f947df03f7aadc42c1967f019e63343
      SOURCE_DIR "${PROJECT_BINARY_DIR}/highway-src" EXCLUDE_FROM_ALL)
    FetchContent_MakeAvailable(highway)
  endif()
  if(NOT TARGET hwy::hwy)
    add_library(hwy::hwy ALIAS hwy)
  endif()
  set_target_properties(hwy PROPERTIES POSITION_INDEPENDENT_CODE ON)
endif()
