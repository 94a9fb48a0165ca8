#!/usr/bin/env bash
# check.sh BUILD_DIR CC CXX: installs a build, moves the prefix, and builds and runs projects outside
# the tree against it: C++ by CMake, C++ and C89 by pkg-config.
set -euo pipefail
build=$1 cc=$2 cxx=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
model=$here/../data/bert

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/moved"
cp "$here"/{main.cc,consumer.c,CMakeLists.txt} "$work"

# Nothing that is installed may remember where it was built or first put.
grep -rIl -e "$work/first" -e "$build" "$work/moved" && { echo 'these files hold a path of the build'; exit 1; }

echo 'by CMake:'
cmake -S "$work" -B "$work/build" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_PREFIX_PATH="$work/moved" >"$work/log" ||
  { cat "$work/log"; exit 1; }
cmake --build "$work/build" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/build/consumer" "$model"

echo 'by pkg-config:'
pc=$(dirname "$(find "$work/moved" -name pozor.pc)")
export PKG_CONFIG_PATH=$pc LD_LIBRARY_PATH=${pc%/pkgconfig}
# shellcheck disable=SC2046  # flags are words
"$cxx" -std=c++20 "$work/main.cc" -o "$work/from_cpp" $(pkg-config --cflags --libs pozor)
"$work/from_cpp" "$model"
# An older standard is answered with the one that is needed, not with what its headers lack.
# shellcheck disable=SC2046
if "$cxx" -std=c++17 -fsyntax-only "$work/main.cc" $(pkg-config --cflags pozor) 2>"$work/log"; then
  echo 'pozor.hpp compiled as C++17'
  exit 1
fi
grep -q 'needs C++20' "$work/log" || { cat "$work/log"; exit 1; }
# shellcheck disable=SC2046
"$cc" -std=c89 -pedantic -Werror -Wno-long-long "$work/consumer.c" -o "$work/from_c" $(pkg-config --cflags --libs pozor)
"$work/from_c" "$model"

echo 'the command:'
"$work/moved/bin/pozor" info >/dev/null
