#!/usr/bin/env bash
# Runs tests on the CPU tiers that this machine lacks: in Bochs, as a Sapphire Rapids CPU with
# AVX-VNNI and AVX-512 (VNNI and BF16 among it). A minimal Linux boots from a CD image, runs the
# programs of the release build from its memory and reports on the serial line.
#
#   emulate.sh [--model FOLDER] [TEST[:CASES]...]
#
#   TEST    a test program without its `_test`, or a pattern of some; default 'kernels_*'.
#           `emulate.sh --help` lists them
#   CASES   doctest's filter of the program's cases, such as '*fused*'
#   FOLDER  a model whose vectors are compared afterwards, default tests/data/bert: in each precision
#           and on each tier with fused multiply-add, they must have the bits they have here
#
# The emulator computes lane by lane: a second of a test here takes minutes there, the kernel tests
# ten, and reading a model of 100 MB in int8 some of them for each tier. What Bochs lacks is the
# switch by which Linux hands out tiles (XFD), so AMX runs on the tests' own emulator.
# What runs is built before; files are in build/emulate, and the emulator is built once, from what
# tools/setup.sh --dev fetched. Exit code: 0 done, 1 failed, 2 used wrongly.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=${POZOR_JOBS:-$(nproc)}
source=$root/build/deps/bochs-3.0 parts=$root/build/deps/emulator-root
release=$root/build/release/bin work=$root/build/emulate
texts_compared=4

die() { printf 'emulate: %s\n' "$*" >&2; exit 1; }
misuse() { printf 'emulate: %s\n' "$*" >&2; exit 2; }

# The test programs there can be, without their `_test`: those that need no file but the tests' own.
test_names() {
  (cd "$root/tests" && ls {kernels,engine,models}/*_test.cc) | sed 's|/|_|; s|_test\.cc$||'
}

help() {
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
  echo
  echo 'Tests:'
  test_names | xargs echo | fold -s -w 98
}

build_emulator() {
  [[ -x $source/bochs ]] && return
  echo 'building Bochs'
  (cd "$source" && CC='ccache gcc' CXX='ccache g++' CFLAGS='-O2 -march=native' \
    CXXFLAGS='-O2 -march=native' ./configure --with-nogui --enable-cpu-level=6 --enable-x86-64 \
    --enable-avx --enable-evex --enable-amx --enable-all-optimizations --enable-pci \
    --disable-docbook --disable-readline && make -j "$jobs") \
    >"$root/build/deps/bochs.log" 2>&1 || die 'Bochs did not build; see build/deps/bochs.log'
}

# Turns TEST[:CASES] arguments into lines `program|cases` of the guest's list.
list_tests() {
  local argument pattern cases name known
  known=$(test_names)
  for argument in "$@"; do
    pattern=${argument%%:*} cases=''
    pattern=${pattern%_test}
    [[ $argument != *:* ]] || cases=${argument#*:}
    # shellcheck disable=SC2053  # a pattern
    for name in $known; do [[ $name != $pattern ]] || echo "${name}_test|$cases"; done | grep . ||
      misuse "$argument: no such test program; there are" $known
  done
}

# doctest runs nothing, and says that all is well, where no case has the name.
check_cases() {
  local program cases
  while IFS='|' read -r program cases; do
    "$release/$program" --no-colors --count --test-case="$cases" | grep -q 'filters: *0$' || continue
    misuse "$program: no case has the name '$cases'; build/release/bin/$program --list-test-cases lists them"
  done <"$work/tests"
}

# Copies programs, stripped, and the shared libraries that they load.
copy_programs() {
  local program library
  for program in "$@"; do strip -o "$work/guest/bin/${program##*/}" "$program"; done
  ldd "$@" | grep -o '/[^ :]*\.so[^ :]*' | sort -u | while read -r library; do
    cp -L --parents "$library" "$work/guest"
  done
}

make_guest() {
  rm -rf "$work/guest"
  mkdir -p "$work"/guest/{bin,dev,proc,sys,tmp,lib,lib64}
  cp "$work/tests" "$work/guest/"
  copy_programs "${programs[@]/#/$release/}" "$release/pozor"
  cp "$parts/bin/busybox" "$work/guest/bin/"
  cp -rL "$model" "$work/guest/model"
  head -n "$texts_compared" "$root/tools/samples/sentences.txt" >"$work/guest/texts.txt"
  # Tests find files where they were at build time: sources that one reads, and data.
  mkdir -p "$work/guest$root/tests"
  cp -r "$root/kernels" "$work/guest$root/"
  ! grep -qv '^kernels_' "$work/guest/tests" || cp -r "$root/tests/data" "$work/guest$root/tests/"
  guest_init >"$work/guest/init"
  chmod +x "$work/guest/init"
}

# The guest's first and only process.
guest_init() {
  cat <<'END'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
echo "== CPU$(sed -n 's/^model name.*:/:/p' /proc/cpuinfo):" \
  $(sed -n 's/^flags.*: //p' /proc/cpuinfo | tr ' ' '\n' | grep -E '^(avx|fma|amx)')
while IFS='|' read -r program cases; do
  echo "== run $program $cases"
  "$program" --no-colors --test-case="$cases" </dev/null
  echo "== exit code $? of $program $cases"
done </tests
for tier in $(pozor info | sed -n 's/^tiers *sse4 //p'); do
  for precision in f32 int8 bf16; do
    pozor encode /model /texts.txt --cpu "$tier" --precision "$precision" --quiet -o /tmp/out.npy &&
      echo "== vectors $tier $precision $(sha256sum </tmp/out.npy | cut -d' ' -f1)" ||
      echo "== exit code 1 of pozor encode, $tier $precision"
  done
done
echo '== end'
sleep 1  # the serial line sends what is left
poweroff -f
END
}

# mitigations, KASLR: slow and of no use here. fsrm: with it and without ERMS, which Bochs announces
# but does not switch on, memmove of Linux before 6.3 runs away. A panic restarts, which as a triple
# fault ends the emulator.
make_image() {
  local disc=$work/disc
  mkdir -p "$disc"
  cp "$parts/usr/lib/ISOLINUX/isolinux.bin" "$parts/usr/lib/syslinux/modules/bios/ldlinux.c32" "$disc/"
  cp "$parts"/boot/vmlinuz-* "$disc/vmlinuz"
  (cd "$work/guest" && find . | cpio --create --format=newc --quiet) >"$disc/initrd"
  local options='console=ttyS0 quiet mitigations=off nokaslr tsc=reliable clearcpuid=fsrm panic=-1 reboot=t'
  printf '%s\n' 'default linux' 'label linux' 'kernel vmlinuz' 'initrd initrd' "append $options" \
    >"$disc/isolinux.cfg"
  xorriso -as mkisofs -quiet -o "$work/boot.iso" -b isolinux.bin -c boot.cat -no-emul-boot \
    -boot-load-size 4 -boot-info-table "$disc" 2>/dev/null
}

emulator_settings() {
  # Linux does not start with AMX but not XFD, Bochs' system management mode not with LA57.
  local left_out=amx,amx_int8,amx_bf16,la57
  cat <<END
display_library: nogui
romimage: file=$parts/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=$parts/usr/share/vgabios/vgabios.bin
cpu: model=sapphire_rapids, exclude_features="$left_out", ips=200000000, reset_on_triple_fault=0
memory: guest=1024, host=1024
ata0-master: type=cdrom, path=$work/boot.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$work/serial.txt
log: $work/bochs.log
panic: action=fatal
error: action=ignore
END
}

# Boots the guest and shows what it says until it is off.
run_guest() {
  emulator_settings >"$work/bochsrc"
  : >"$work/serial.txt"
  nice "$source/bochs" -q -f "$work/bochsrc" </dev/null >"$work/bochs.out" 2>&1 &
  local emulator=$!
  # shellcheck disable=SC2064  # the number of now
  trap "kill $emulator 2>/dev/null" EXIT
  tail -n +1 -f --pid=$emulator "$work/serial.txt" |
    sed -u -n -E 's/\r$//; s/^== //p; /^\[doctest\] (test cases|assertions)|ERROR:|Kernel panic/p'
  wait $emulator || true  # it ends with code 1 when the guest switches itself off
  trap - EXIT
}

# Compares a line `vectors TIER PRECISION HASH` of the guest with the vectors computed here.
check_vectors() {
  local tier=$1 precision=$2 hash=$3 here
  # zen4 rounds bf16 in its own way.
  [[ $tier == zen4 && $precision == bf16 ]] && return
  "$release/pozor" encode "$model" "$work/guest/texts.txt" --cpu avx2 --precision "$precision" --quiet \
    -o "$work/here.npy"
  here=$(sha256sum <"$work/here.npy" | cut -d' ' -f1)
  [[ $here == "$hash" ]] || { echo "$tier $precision: other bits than here on avx2"; return 1; }
  echo "$tier $precision: the same bits as here on avx2"
}

check_results() {
  local failed=0 line
  tr -d '\r' <"$work/serial.txt" >"$work/serial.log"
  while read -r line; do
    # shellcheck disable=SC2086  # the fields of the line
    check_vectors $line || failed=1
  done < <(sed -n 's/^== vectors //p' "$work/serial.log")
  grep '^== exit code [1-9]' "$work/serial.log" && failed=1
  grep -q '^\[doctest\] test cases: *0 ' "$work/serial.log" && { echo 'no case has that name'; failed=1; }
  grep -q '^== vectors .* int8 ' "$work/serial.log" || { echo 'no vectors from the guest'; failed=1; }
  grep -q '^== end' "$work/serial.log" || { echo 'the guest did not come to its end'; failed=1; }
  [[ $failed == 0 ]] || die 'failed; the whole output is in build/emulate/serial.log'
}

model=$root/tests/data/bert
tests=()
while [[ $# -gt 0 ]]; do
  case $1 in
    -h | --help) help; exit ;;
    --model)
      [[ $# -gt 1 && -d $2 ]] || misuse "--model ${2:-}: no such folder; give that of a model"
      model=$2
      shift
      ;;
    -*) misuse "$1: unknown option; there is --model FOLDER" ;;
    *) tests+=("$1") ;;
  esac
  shift
done
[[ ${#tests[@]} -gt 0 ]] || tests=('kernels_*')
chosen=$(list_tests "${tests[@]}")
[[ -d $source && -d $parts ]] || die 'the emulator is not there; run tools/setup.sh --dev'
mkdir -p "$work"
echo "$chosen" >"$work/tests"
mapfile -t programs < <(cut -d'|' -f1 <<<"$chosen" | sort -u)
"$root/tools/dev" build pozor_command "${programs[@]}"
check_cases
build_emulator
make_guest
make_image
run_guest
check_results
