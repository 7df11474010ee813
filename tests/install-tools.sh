#!/bin/sh
# Installs the programs that the tests drive, where this is root on a Debian-like machine. Where it is not, the
# tests that need them say that they were skipped, and why.
set -eu

missing=""
need() { # program, package
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need bwrap bubblewrap
need strace strace
need git-lfs git-lfs
need go golang-go
need cargo cargo
need node nodejs
need npm npm
need zsh zsh
need fish fish

[ -z "$missing" ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "tests that need these are skipped, they can be installed from your distribution's packages:$missing" >&2
    exit 0
fi
echo "installing:$missing" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086  one word per package
apt-get install -y -qq --no-install-recommends $missing >/dev/null
