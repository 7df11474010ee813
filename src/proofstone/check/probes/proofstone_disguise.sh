#!/bin/sh
# Starts a test program under another name, for another user with another home.
#
#     sh proofstone_disguise.sh PROGRAM ARGUMENTS...
#
# `go test -exec` and cargo's `runner` call it. The toolchain itself keeps its own environment, because it finds its
# caches and dependencies through HOME. A link gives the program its other name; the file is where the toolchain put it.
set -eu
program=$1
shift
case $program in
  /*) ;;
  *) program=$PWD/$program ;;
esac
folder=$(mktemp -d)
mkdir "$folder/home"
ln -s "$program" "$folder/main"
HOME=$folder/home USER=worker LOGNAME=worker exec "$folder/main" "$@"
