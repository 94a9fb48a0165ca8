#!/usr/bin/env bash
# From a clone to sentence vectors: set up, build, get the default model, encode a sample file,
# print its three nearest sentence pairs, write a page of what every attention head looks at, and say
# where everything is.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build/release
vectors=$root/build/sentences.npy
sentences=$root/tools/samples/sentences.txt
page=$root/build/attention.html

"$root/tools/setup.sh"
"$root/tools/dev" build pozor_command nearest_pairs
model=$("$root/tools/get_model.sh")

echo
"$build/bin/pozor" encode "$model" "$sentences" -o "$vectors"
echo
echo "The three nearest pairs of $(wc -l <"$sentences") sentences (cosine similarity):"
"$build/bin/nearest_pairs" "$model" "$sentences"
echo
"$build/bin/pozor" attention view "$model" "The bank of the river was muddy." -o "$page"
cat <<EOT

sentences  $sentences
vectors    $vectors (NumPy, float32)
attention  $page (open it in a browser and click a word)
model      $model
command    $build/bin/pozor  (try: $build/bin/pozor --help)
README     $root/README.md
EOT
