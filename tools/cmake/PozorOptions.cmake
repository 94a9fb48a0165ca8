# Compiler settings shared by every folder.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(POZOR_CCACHE ccache)
if(POZOR_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${POZOR_CCACHE}")
endif()

# Everything a target of ours is compiled with. Installed consumers see none of it.
add_library(pozor_options INTERFACE)
target_compile_options(pozor_options INTERFACE
  -Wall -Wextra -Wconversion -Wno-sign-conversion -ffp-contract=off -fno-math-errno
  $<$<BOOL:${POZOR_WERROR}>:-Werror>)
target_include_directories(pozor_options INTERFACE "${PROJECT_SOURCE_DIR}")

# g++ 12 sees overlaps that cannot be in `"text" + std::string` (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(pozor_options INTERFACE -Wno-restrict)
endif()

# The stable_sort of libstdc++ 12 calls what the same library deprecates.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(pozor_options INTERFACE -Wno-deprecated-declarations)
endif()

# Baseline objects run on any x86-64-v2 CPU; wider code stands behind run-time dispatch only.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(pozor_options INTERFACE -march=x86-64-v2)
endif()

if(POZOR_SANITIZE)
  target_compile_options(pozor_options INTERFACE
    -fsanitize=${POZOR_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g)
  target_link_options(pozor_options INTERFACE -fsanitize=${POZOR_SANITIZE})
endif()
if(POZOR_BUILD_FUZZ)
  target_compile_options(pozor_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
