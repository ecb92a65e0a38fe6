#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the tools: paths, and the installation of Debian packages.
# shellcheck disable=SC2034 # used by the scripts that source this
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
prefix=$root/_install
build=$root/build
cache=${QDQD_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/qdqd}
# CUDA's compiler, if tools/cuda has installed one.
cuda_toolkit=$cache/cuda-13.0
# Debian's own Python, which has the modules of Debian's packages.
python=/usr/bin/python3
# The packages that tools/build needs.
build_packages=(gcc libc6-dev make autoconf automake libtool pkgconf
    libmicrohttpd-dev libgnutls28-dev libjansson-dev libprotobuf-c-dev protobuf-c-compiler libonnx-dev
    libsqlite3-dev libpq-dev liblua5.4-dev libzip-dev libarchive-dev libjpeg62-turbo-dev libpng-dev
    libsnappy-dev libzstd-dev libpcre2-dev libutf8proc-dev zlib1g-dev
    libssl-dev libcurl4-openssl-dev libinih-dev libseccomp-dev check
    python3 python3-pip python3-venv curl ca-certificates)

export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
# ccache takes the names of headers from the compiler instead of preprocessing each file first.
export CCACHE_DEPEND=1

say() {
    printf '%s\n' "${0##*/}: $*" >&2
}

die() {
    say "$*"
    exit 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo --preserve-env=DEBIAN_FRONTEND "$@"
    else
        die "run as root or install sudo; wanted to run: $*"
    fi
}

# Updates apt's lists, once for a tool and all that it runs.
update_lists() {
    [ -z "${qdqd_lists_are_new:-}" ] || return 0
    as_root apt-get -qq update || say "apt-get update failed; going on with old lists"
    export qdqd_lists_are_new=yes
}

# Installs the missing packages. Does not run apt when none is missing, so that a second run
# needs no network.
need_packages() {
    local package missing=()
    for package; do
        dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null |
            grep -qx installed || missing+=("$package")
    done
    [ ${#missing[@]} = 0 ] && return
    say "installing ${missing[*]}"
    update_lists
    as_root apt-get -qq -y --no-install-recommends install "${missing[@]}" >&2
}

# fetch FILE SHA256 COMMAND...: makes FILE in the cache. COMMAND runs in an empty folder and
# has to leave a file of that name there. The hash is checked on every run.
fetch() {
    local file=$1 sha256=$2 work
    shift 2
    if ! matches "$cache/$file" "$sha256"; then
        say "fetching $file"
        mkdir -p "$cache"
        work=$(mktemp -d "$cache/.tmp.XXXXXX")
        # shellcheck disable=SC2064 # the folder's name as it is now
        trap "rm -rf '$work'" EXIT
        (cd "$work" && "$@") >&2 || die "cannot fetch $file"
        matches "$work/$file" "$sha256" || die "$file: not the pinned SHA-256"
        mv -f "$work/$file" "$cache/$file"
        rm -rf "$work"
    fi
}

matches() {
    [ -f "$1" ] && [ "$(sha256sum <"$1")" = "$2  -" ]
}

# Prints the names of the libraries in the Python of FOLDER, among which configure searches.
list_libraries() {
    (cd "$1" && ls venv/lib/python3*/site-packages/*/libs) 2>/dev/null || true
}

# Makes the script configure and Makefile.in.
make_configure() {
    if [ ! -f "$root/configure" ] || [ ! -f "$root/Makefile.in" ]; then
        say "running autoreconf"
        mkdir -p "$root/m4" "$root/build-aux"
        (cd "$root" && autoreconf --force --install) >&2
    fi
}

# configure_tree FOLDER ARGUMENT...: configures an out-of-tree build with these options. It
# configures again when the options or the path of the clone have changed; make notices
# changes in the clone. A newly configured folder compiles with ccache where that is
# installed. The runtimes of build/venv are for the tree in build/, where they are kept.
configure_tree() {
    local folder=$1 nvcc choices
    shift
    # The machine's own compiler comes before the one that tools/cuda unpacked.
    nvcc=${NVCC:-$(PATH=$PATH:${CUDA_HOME:-}/bin:$cuda_toolkit/bin command -v nvcc)} || true
    set -- --enable-developer --prefix="$prefix" --with-onnxruntime-include="$cache" \
        --with-onnxruntime-library="$prefix/lib/qdqd/libonnxruntime.so.1" \
        ${nvcc:+"NVCC=$nvcc"} "$@"
    make_configure
    choices="$* $(list_libraries "$folder")"
    if [ ! -f "$folder/Makefile" ] || [ "$(cat "$folder/.choices" 2>/dev/null)" != "$choices" ]; then
        say "configuring in ${folder#"$root"/}"
        mkdir -p "$folder"
        find "$folder" -mindepth 1 -maxdepth 1 ! -name venv ! -name demo-venv -exec rm -rf {} +
        printf '%s\n' "$choices" >"$folder/.choices"
        if [ -z "${CC:-}" ] && command -v ccache >/dev/null; then
            set -- "$@" CC='ccache gcc' ${nvcc:+"NVCC=ccache $nvcc"}
        fi
        # libtool is a script, which starts for each file: in a small shell in half the time.
        (cd "$folder" && CONFIG_SHELL=/bin/sh /bin/sh "$root/configure" --quiet "$@") >&2
    fi
    say "compiling in ${folder#"$root"/}"
}

# on_demand FOLDER: prints the paths of the libraries that programs of this build load at the first call.
on_demand() {
    local name path
    sed -n 's/^#define SONAME_[A-Z0-9]* "\(.*\)"/\1/p' "$1/generated/config.h" |
        while read -r name; do
            path=$(ldconfig -p | awk -v name="$name" '$1 == name {print $NF; exit}')
            [ -n "$path" ] || die "$name is not installed"
            echo "$path"
        done
}

# package_of FILE: prints the package that has it. A package may say that a library of /usr/lib is
# in /lib.
package_of() {
    local file package
    file=$(readlink -f "$1")
    package=$(dpkg-query --search "$file" "${file#/usr}" 2>/dev/null | sed -n '1s/:.*//p') || true
    [ -n "$package" ] || die "no package has $file"
    echo "$package"
}

# Prints the option for a linker that is quicker than the usual one, where binutils has it. It is for
# programs that are not installed.
quick_linker() {
    ! command -v ld.gold >/dev/null || echo -fuse-ld=gold
}

# configure_and_make FOLDER ARGUMENT...: the same, then builds everything that is installed.
configure_and_make() {
    configure_tree "$@"
    make -C "$1" -j"$(nproc)" --no-print-directory >&2
}
