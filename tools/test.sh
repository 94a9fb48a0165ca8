#!/usr/bin/env bash
# Sets up, builds and runs every test of the release build. Quick when run again.
# Arguments go to ctest, e.g. tools/test.sh -R tokenizer
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/tools/setup.sh"
"$root/tools/get_model.sh" >/dev/null
"$root/tools/dev" test "$@"
