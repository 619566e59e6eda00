#!/bin/sh
# Compiles the kernels to PTX and writes what each takes of a device. Needs neither a GPU nor a CUDA
# installation: the compiler comes from the package index, pinned by checksum.
#   cuda/build.sh          writes src/ops/cuda/ptx/
#   cuda/build.sh --check  fails when what is committed is not what would be written
set -eu
export LC_ALL=C # one order of files and rows everywhere
cd "$(dirname "$0")/.."
cache="${SHIKHA_CUDA:-${XDG_CACHE_HOME:-$HOME/.cache}/shikha-cuda}"
home="$cache/nvidia/cu13"

# CUDA 13.0, not newer: driver 580 refuses the PTX of a newer compiler.
packages='
nvidia-cuda-nvcc nvidia_cuda_nvcc-13.0.88-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl 56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03
nvidia-cuda-crt nvidia_cuda_crt-13.0.88-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl 2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4
nvidia-nvvm nvidia_nvvm-13.0.88-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0
nvidia-cuda-runtime nvidia_cuda_runtime-13.0.96-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl 7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
nvidia-cuda-cccl nvidia_cuda_cccl-13.0.85-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649
'

fetch() { # name, file, checksum
  at="$cache/$2"
  if [ ! -f "$at" ]; then
    url=$(curl -fsSL "https://pypi.org/simple/$1/" | tr '"' '\n' | grep -F "/$2" | head -n 1 | sed 's/#.*//')
    case $url in /*) url="https://pypi.org$url" ;; esac
    curl -fsSL -o "$at.part" "$url"
    mv "$at.part" "$at"
  fi
  echo "$3  $at" | sha256sum --check --quiet
}

# Says what lies unpacked in the cache; written last, so that one that was cut short is unpacked again.
stamp="$cache/unpacked"
if [ "$(cat "$stamp" 2>/dev/null)" != "$(echo "$packages")" ]; then
  mkdir -p "$cache"
  echo "$packages" | while read -r name file sum; do
    [ -z "$name" ] || { fetch "$name" "$file" "$sum"; unzip -q -o "$cache/$file" -d "$cache"; }
  done
  echo "$packages" >"$stamp"
fi
PATH="$home/bin:$PATH"

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for source in src/ops/cuda/*.cu; do
  nvcc -ptx -arch=compute_80 -std=c++17 -o "$out/$(basename "$source" .cu).ptx" "$source"
done

# One PTX serves both: the driver compiles it for the device; here ptxas does.
echo "kernel,architecture,registers,stack bytes,spill store bytes,spill load bytes,static shared bytes" >"$out/resources.csv"
for architecture in sm_80 sm_90; do
  for ptx in "$out"/*.ptx; do
    ptxas -v -arch=$architecture -o /dev/null "$ptx" 2>&1 | awk -v a=$architecture '
      /Compiling entry function/ { split($0, part, "\047"); kernel = part[2] }
      kernel != "" && /bytes stack frame/ { stack = $1; store = $5; load = $9 }
      kernel != "" && /Used [0-9]+ registers/ {
        shared = 0
        for (i = 1; i <= NF; i++) { if ($i == "Used") used = $(i + 1); if ($i ~ /^smem/) shared = $(i - 2) }
        print kernel "," a "," used "," stack "," store "," load "," shared
        kernel = ""
      }'
  done
done | sort >>"$out/resources.csv"

# The sources that all this is of: a test compares, with no compiler at hand.
(cd src/ops/cuda && sha256sum ./*.cu ./*.cuh) >"$out/sources.sha256"
(cd "$out" && sha256sum ./*.ptx ./resources.csv) >>"$out/sources.sha256"

if [ "${1:-}" = --check ]; then
  diff -r "$out" src/ops/cuda/ptx
else
  mkdir -p src/ops/cuda/ptx
  cp "$out"/* src/ops/cuda/ptx/
  cat "$out/resources.csv"
fi
