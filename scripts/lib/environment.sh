# Sourced by the scripts of this folder: a known umask and locale, the repository root, and installation of packages.
# Safe to source twice.
set -euo pipefail
umask 022
export LC_ALL=C.UTF-8 LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive
unset CDPATH GREP_OPTIONS
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cd "$root"
build=${HLORUN_BUILD_DIR:-$root/build}
venv=${HLORUN_VENV:-$root/.venv}
jobs=$(nproc)
export CCACHE_DIR=${CCACHE_DIR:-$HOME/.cache/ccache}
# Open MPI refuses root and more ranks than cores unless told.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

say() { printf '\n== %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 2; }

# What hlorun builds and runs with, as Debian 12 names it.
packages=(
  ca-certificates g++ cmake ninja-build ccache pkg-config git python3 python3-venv
  ocl-icd-opencl-dev opencl-headers opencl-clhpp-headers pocl-opencl-icd libclblast-dev
  libhwloc-dev openmpi-bin libopenmpi-dev liblapacke-dev libeigen3-dev nlohmann-json3-dev libcli11-dev
  libfmt-dev libspdlog-dev protobuf-compiler libprotobuf-dev libzip-dev libxxhash-dev
  libgtest-dev libgmock-dev libbenchmark-dev libmpfr-dev
)

# install_packages NAME...: those that are missing, with apt, as root or through sudo.
install_packages() {
  local missing=() name
  for name in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null || true)" = installed ] || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  local sudo=""
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "these packages are missing and neither root nor sudo is at hand: ${missing[*]}"
    sudo=sudo
  fi
  say "Installing ${#missing[@]} packages"
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$root/.apt.log" 2>&1 ||
    { tail -n 20 "$root/.apt.log" >&2; die "apt-get install failed"; }
  rm -f "$root/.apt.log"
}

# build_targets TARGET...: configures when needed, then builds quietly (errors are printed).
build_targets() {
  if [ ! -f "$build/build.ninja" ]; then
    cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE="${HLORUN_BUILD_TYPE:-Release}" \
      -DHLORUN_SANITIZE="${HLORUN_SANITIZE:-}" >"$root/.configure.log" 2>&1 ||
      { tail -n 30 "$root/.configure.log" >&2; die "cmake failed"; }
    rm -f "$root/.configure.log"
  fi
  ninja -C "$build" -j "$jobs" "$@"
}
