#!/usr/bin/env bash
# From a clone to sentence vectors: set up, build, get the default model, encode a sample file,
# print its three nearest sentence pairs, and say where everything is.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build/release
vectors=$root/build/sentences.npy
sentences=$root/tools/samples/sentences.txt

"$root/tools/setup.sh"
"$root/tools/dev" build pozor_command nearest_pairs
model=$("$root/tools/get_model.sh")

echo
"$build/bin/pozor" encode "$model" "$sentences" -o "$vectors"
echo
echo "The three nearest pairs of $(wc -l <"$sentences") sentences (cosine similarity):"
"$build/bin/nearest_pairs" "$model" "$sentences"
cat <<EOT

sentences  $sentences
vectors    $vectors (NumPy, float32)
model      $model
command    $build/bin/pozor  (try: $build/bin/pozor --help)
README     $root/README.md
EOT
