#!/usr/bin/env bash
# Copyright The Rollcall Authors
# SPDX-License-Identifier: Apache-2.0

# Runs a command with a Docker engine: with the one that responds or, as root on Linux, with
# one that is started for it in namespaces of its own, and stopped with everything in it.
# INSTALL_DOCKER=1 installs Debian's docker.io if there is no dockerd. Where there is no
# engine, it prints why, and succeeds without running the command.
#
#   hack/with-docker.sh COMMAND [ARGUMENT]...

set -euo pipefail

skip() {
  printf 'skipped, as there is no Docker engine: %s\n' "$1"
  exit 0
}

# In the namespaces: start the engine, and run the command.
if [ "${1-}" = --inside ]; then
  dir=$2
  shift 2
  export DOCKER_HOST=unix://$dir/docker.sock
  ip link set lo up
  arguments=()
  # "docker exec --privileged", which kind uses, adds all capabilities. In some sandboxes
  # root lacks CAP_SYS_RESOURCE, so that it fails.
  bounds=$(sed -n 's/^CapBnd:\s*//p' /proc/self/status)
  if (((0x$bounds >> 24 & 1) == 0)); then
    cat >"$dir/runtime" <<'RUNTIME'
#!/bin/sh
file='' previous=''
for argument; do
  [ "$previous" != --process ] || file=$argument
  previous=$argument
done
[ -z "$file" ] || sed -i 's/,"CAP_SYS_RESOURCE"//g; s/"CAP_SYS_RESOURCE",//g' "$file"
exec runc "$@"
RUNTIME
    chmod 0755 "$dir/runtime"
    arguments=(--add-runtime "reduced=$dir/runtime" --default-runtime reduced)
  fi
  for driver in overlay2 vfs; do
    dockerd --host "$DOCKER_HOST" --data-root "$dir/data-$driver" --exec-root "$dir/exec" --pidfile "$dir/pid-$driver" \
      --storage-driver "$driver" "${arguments[@]}" >"$dir/log" 2>&1 &
    engine=$!
    for _ in $(seq 100); do
      if docker version >/dev/null 2>&1; then
        status=0
        "$@" || status=$?
        kill "$engine"
        wait "$engine" || true
        exit "$status"
      fi
      kill -0 "$engine" 2>/dev/null || break
      sleep 0.2
    done
    kill "$engine" 2>/dev/null || true
    wait "$engine" || true
  done
  skip "dockerd does not start: $(grep -v level=info "$dir/log" | tail -n 1)"
fi

command -v docker >/dev/null && docker version >/dev/null 2>&1 && exec "$@"
[ "$(uname -s)" = Linux ] || skip 'start one'
[ "$(id -u)" = 0 ] || skip 'start one, or run this as root'
if ! command -v dockerd >/dev/null || ! command -v docker >/dev/null; then
  [ -n "${INSTALL_DOCKER-}" ] || skip 'install one, or set INSTALL_DOCKER=1'
  command -v apt-get >/dev/null || skip 'there is no apt-get to install docker.io'
  echo 'installing docker.io'
  log=$(mktemp)
  # RUNLEVEL: its service is not started.
  if ! { timeout 40 apt-get update && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
    timeout 100 apt-get install -y --no-install-recommends docker.io iproute2 iptables; } >"$log" 2>&1; then
    reason=$(tail -n 1 "$log")
    rm -f "$log"
    skip "docker.io cannot be installed: $reason"
  fi
  rm -f "$log"
fi
for tool in docker dockerd runc ip iptables unshare; do
  command -v "$tool" >/dev/null || skip "there is no $tool"
done
unshare --mount --net --pid --fork --mount-proc true 2>/dev/null || skip 'this machine does not allow new namespaces'

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unshare --mount --net --pid --fork --kill-child --mount-proc "$0" --inside "$dir" "$@"
