#!/usr/bin/env bash
# Source packages, and packages of another architecture, from the mirror that apt is set up with.
# The system's apt configuration, lists and package state are left alone: apt runs with a folder of
# its own, and checks signatures and hashes as always.
#
#   apt_fetch.sh mirror                                        prints the mirror; empty before the
#                                                              first `apt-get update`
#   apt_fetch.sh source SUITE PACKAGE ARCHIVE SHA256 TARGET    unpacks a source archive into TARGET
#   apt_fetch.sh binary ARCHITECTURE TARGET PACKAGE...         unpacks packages of the running
#                                                              release into TARGET
#   apt_fetch.sh unpack TARGET PACKAGE...                      the same of this architecture, by
#                                                              the system's own sources
set -euo pipefail

release=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")

find_mirror() {
  apt-get indextargets --format '$(SITE)|$(RELEASE)' 2>/dev/null |
    awk -F'|' -v release="$release" '$2 == release && !found { print $1; found = 1 }'
}

# write_sources TYPE SUITE ARCHITECTURES
write_sources() {
  local mirror
  mirror=$(find_mirror)
  [[ -n $mirror ]] || { echo "apt_fetch: apt knows no mirror of $release; run apt-get update" >&2; exit 1; }
  printf '%s\n' "Types: $1" "URIs: $mirror" "Suites: $2" 'Components: main' \
    ${3:+"Architectures: $3"} 'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg' \
    >"$work/pozor.sources"
}

# apt-get with nothing but the sources and the state of $work.
private_apt() {
  mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
  (cd "$work" && apt-get -qq -o Dir::Etc::sourcelist="$work/pozor.sources" \
    -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$work/lists" \
    -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root "$@")
}

# Makes the work folder beside the target, so that the last step is a rename.
begin() {
  target=$1
  work=$(mktemp -d "${target%/*}/fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  mkdir "$work/tree"
}

finish() {
  rm -rf "$target"
  mv "$work/tree" "$target"
}

case ${1:-} in
  mirror) find_mirror ;;
  source)
    begin "$6"
    write_sources deb-src "$2" ''
    private_apt update
    # Some mirrors lack the package's description, of which apt complains. The archive is the one all
    # the same, so what apt says counts only where that is missing too.
    private_apt source --download-only "$3" 2>"$work/errors" || true
    [[ -f $work/$4 ]] || { cat "$work/errors" >&2; exit 1; }
    (cd "$work" && echo "$5  $4" | sha256sum --check --quiet)
    tar -xf "$work/$4" -C "$work/tree" --strip-components=1
    finish
    ;;
  binary)
    architecture=$2
    begin "$3"
    shift 3
    write_sources deb "$release" "$architecture"
    : >"$work/status"
    foreign=(-o APT::Architecture="$architecture" -o APT::Architectures="$architecture"
      -o Dir::State::status="$work/status")
    private_apt "${foreign[@]}" update
    private_apt "${foreign[@]}" download "$@"
    for package in "$work"/*.deb; do dpkg-deb -x "$package" "$work/tree"; done
    finish
    ;;
  unpack)
    begin "$2"
    shift 2
    (cd "$work" && apt-get -qq -o APT::Sandbox::User=root download "$@")
    for package in "$work"/*.deb; do dpkg-deb -x "$package" "$work/tree"; done
    finish
    ;;
  *) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
