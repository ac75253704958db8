#!/bin/sh
# Copyright The Rollcall Authors
# SPDX-License-Identifier: Apache-2.0

# Stands in for the command line of a container engine. In the folder $FAKE_ENGINE:
#   clusters/NAME/{id,ports,admin.conf}  a cluster with one container, NAME-control-plane
#   clusters/NAME/stopped                its container is stopped
#   clusters/NAME/hang                   reading its admin.conf hangs while the file exists
#   down, hang                           the engine does not run, or does not respond
#   hang-COMMAND-v                       the version of this engine hangs while the file exists
#   commands                             gets a line for each command
set -u
state=$FAKE_ENGINE
name=${0##*/}
label=io.x-k8s.kind.cluster
echo "$*" >>"$state/commands"

fail() {
  echo "$1" >&2
  exit 1
}

await() {
  while [ -e "$1" ]; do /bin/sleep 0.05; done
}

# read_file prints a file, without a process: commands must take little time.
read_file() {
  while IFS= read -r line || [ -n "$line" ]; do printf '%s\n' "$line"; done <"$1"
}

if [ "$1" = -v ]; then
  await "$state/hang-$name-v"
  case $name in
    docker) echo 'Docker version 28.2.2, build e6534b4' ;;
    *) echo "$name version 5.0.0" ;;
  esac
  exit
fi
if [ "$1" = --version ]; then
  echo "$name version 5.0.0"
  exit
fi
await "$state/hang"
[ ! -e "$state/down" ] || fail 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?'

# find sets the folder of the cluster that has the container.
find() {
  dir=$state/clusters/${1%-control-plane}
  [ -e "$dir/id" ] || fail "Error response from daemon: No such container: $1"
}

if [ "$1" = exec ]; then # --privileged NAME cat /etc/kubernetes/admin.conf
  find "$3"
  [ "$2 $4 $5" = '--privileged cat /etc/kubernetes/admin.conf' ] || fail "Error: unknown command $*"
  await "$dir/hang"
  read -r id <"$dir/id"
  [ ! -e "$dir/stopped" ] || fail "Error response from daemon: container $id is not running"
  [ -e "$dir/admin.conf" ] || fail "cat: can't open '$5': No such file or directory"
  read_file "$dir/admin.conf"
  exit
fi

command=$1 format='' filter='' last=''
shift
while [ $# -gt 0 ]; do
  case $1 in
    --format) format=$2; shift ;;
    --filter) filter=$2; shift ;;
    *) last=$1 ;;
  esac
  shift
done

case $command in
  ps)
    for dir in "$state"/clusters/*; do
      cluster=${dir##*/}
      [ -e "$dir/id" ] || continue
      case $filter in
        "label=$label" | "label=$label=$cluster") ;;
        *) continue ;;
      esac
      read -r id <"$dir/id"
      ports=
      [ -e "$dir/stopped" ] || read -r ports <"$dir/ports"
      case $format in
        '{{.ID}} {{.Ports}}') echo "$id $ports" ;;
        '{{.Names}}') echo "$cluster-control-plane" ;;
        "{{.Label \"$label\"}}") echo "$cluster" ;;
        *) fail "Error: unknown format $format" ;;
      esac
    done
    ;;
  inspect)
    find "$last"
    [ -e "$dir/stopped" ] || read -r ports <"$dir/ports"
    case $format in
      *kind.role*) echo control-plane ;;
      *desktop*) echo ;;
      *Ports*)
        [ ! -e "$dir/stopped" ] || fail 'template parsing error: template: :1:14: executing "" at <index>: index of untyped nil'
        case $name in
          podman) echo "{\"6443/tcp\":[{\"HostIp\":\"${ports%:*}\",\"HostPort\":\"${ports##*:}\"}]}" ;;
          *) printf '%s\t%s\n' "${ports%:*}" "${ports##*:}" ;;
        esac
        ;;
      *) fail "Error: unknown format $format" ;;
    esac
    ;;
  *) fail "Error: unknown command $command" ;;
esac
