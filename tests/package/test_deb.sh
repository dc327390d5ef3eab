#!/bin/bash
# The Debian package builds, holds what it should, and names the libraries it needs.
set -euo pipefail
build=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cpack --config "$build/CPackConfig.cmake" -B "$scratch" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
package=$(echo "$scratch"/shoal_*.deb)
dpkg-deb --contents "$package" | awk '{ print $6 }' >"$scratch/files"
for file in bin/shoal lib/libshoal.so lib/libshoal.so.0.1 lib/libshoal.a include/shoal/shoal.h include/shoal/kmeans.h \
    lib/cmake/shoal/shoalConfig.cmake lib/pkgconfig/shoal.pc share/man/man1/shoal.1 share/man/man1/shoal-kmeans.1 \
    share/doc/shoal/copyright libexec/shoal/shoal libexec/shoal/shoal-static; do
    grep -qx "./usr/$file" "$scratch/files" || { echo "missing from the package: $file"; cat "$scratch/files"; exit 1; }
done
if grep -Ev '^\./(usr/((bin|include|lib|libexec|share)/.*)?)?$' "$scratch/files"; then
    echo "out of place in the package: the files above"
    exit 1
fi
depends=$(dpkg-deb --field "$package" Depends)
for library in libc6 zlib1g libpng16-16 libjpeg62-turbo libjansson4; do
    [[ $depends == *"$library (>= "* ]] || { echo "Depends lacks $library: $depends"; exit 1; }
done

# The plug-in of each MPI has a package of its own: shoal itself needs no MPI.
[[ $depends != *mpi* ]] || { echo "the program needs MPI: $depends"; exit 1; }
if [ -e "$build/cuda/libshoal-cuda.so" ]; then
    dpkg-deb --contents "$(echo "$scratch"/shoal-cuda_*.deb)" | grep -q " ./usr/lib/shoal/cuda/libshoal-cuda.so$" ||
        { echo "the package for GPUs lacks its plug-in"; exit 1; }
fi
for kind in openmpi mpich; do
    [ -e "$build/mpi/$kind/libshoal-mpi.so" ] || continue
    package=$(echo "$scratch/shoal-$kind"_*.deb)
    dpkg-deb --contents "$package" | grep -q " ./usr/lib/shoal/$kind/libshoal-mpi.so$" ||
        { echo "no plug-in in $package"; exit 1; }
    [[ $(dpkg-deb --field "$package" Depends) == *"lib$kind"* ]] || { echo "$package does not need lib$kind"; exit 1; }
done
