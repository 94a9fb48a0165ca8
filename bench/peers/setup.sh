#!/usr/bin/env bash
# Installs the peers that Pozor is measured beside, into Python environments of their own:
#
#   bench/peers/setup.sh [FOLDER]        (build/peers)
#
# Three of them, so that one library's threads and pinned versions never meet another's:
# FOLDER/run (engines), FOLDER/torch (sentence-transformers), FOLDER/convert (exporters).
# Python 3.11 and the versions of requirements-*.txt; nothing is installed outside FOLDER.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../../build/peers}
python=${PYTHON:-python3}
mkdir -p "$folder"
for environment in run torch convert; do
  if [[ ! -x $folder/$environment/bin/python ]]; then
    "$python" -m venv "$folder/$environment"
  fi
  "$folder/$environment/bin/pip" install --quiet -r "$here/requirements-$environment.txt"
  echo "$folder/$environment: installed"
done
