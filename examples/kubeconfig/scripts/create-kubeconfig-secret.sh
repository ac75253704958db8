#!/usr/bin/env bash
# Copyright The Rollcall Authors
# SPDX-License-Identifier: Apache-2.0

# Adds a member cluster: creates a ServiceAccount with the permissions of rules.yaml in
# it, and writes a kubeconfig of that ServiceAccount into a Secret of the management
# cluster. Run it again to replace the token. It needs kubectl.

set -euo pipefail

usage() {
  cat <<USAGE
Usage: create-kubeconfig-secret.sh --context CONTEXT [options]

  -c, --context CONTEXT        kubectl context of the member cluster; must be able to create RBAC rules in it
      --management-context CTX kubectl context of the management cluster (default: the current context)
      --name NAME              name of the Secret and of the cluster (default: CONTEXT)
  -n, --namespace NAMESPACE    namespace of the Secret, and of the ServiceAccount in the member (default: default)
  -a, --service-account NAME   ServiceAccount in the member (default: rollcall)
  -t, --role-type TYPE         clusterrole, or role for the namespace only (default: clusterrole)
  -r, --rules-file FILE        file with the permissions (default: rules.yaml beside this script)
      --skip-create-rbac       use an existing ServiceAccount with its permissions
      --duration DURATION      validity of the token, which the member may limit (default: 720h)
      --server URL             address of the member as the controller reaches it (default: that of the context)
  -h, --help                   show this text
USAGE
}

fail() {
  echo "create-kubeconfig-secret.sh: $*" >&2
  exit 1
}

context='' management='' name='' namespace=default account=rollcall role_type=clusterrole
rules=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/rules.yaml
create_rbac=yes duration=720h server=''

while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --skip-create-rbac) create_rbac=no; shift; continue ;;
  esac
  [ $# -ge 2 ] || fail "$1 needs a value; see --help"
  case $1 in
    -c | --context) context=$2 ;;
    --management-context) management=$2 ;;
    --name) name=$2 ;;
    -n | --namespace) namespace=$2 ;;
    -a | --service-account) account=$2 ;;
    -t | --role-type) role_type=$2 ;;
    -r | --rules-file) rules=$2 ;;
    --duration) duration=$2 ;;
    --server) server=$2 ;;
    *) fail "unknown option $1; see --help" ;;
  esac
  shift 2
done

[ -n "$context" ] || fail '--context must be given; see --help'
name=${name:-$context}
case $role_type in
  clusterrole) kind=ClusterRole scope='' ;;
  role) kind=Role scope="  namespace: $namespace" ;;
  *) fail "--role-type must be clusterrole or role, not $role_type" ;;
esac
[ "$create_rbac" = no ] || [ -r "$rules" ] || fail "cannot read $rules"
command -v kubectl > /dev/null || fail 'kubectl is missing'

member() { kubectl --context "$context" "$@"; }
manage() { if [ -n "$management" ]; then kubectl --context "$management" "$@"; else kubectl "$@"; fi; }

create_permissions() {
  {
    cat <<MANIFEST
apiVersion: v1
kind: Namespace
metadata:
  name: $namespace
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: $account
  namespace: $namespace
---
# The UID of kube-system identifies the cluster.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: $account-identity
rules:
- apiGroups: [""]
  resources: ["namespaces"]
  resourceNames: ["kube-system"]
  verbs: ["get"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: $kind
metadata:
  name: $account
$scope
MANIFEST
    cat "$rules"
    binding ClusterRole "$account-identity" ''
    binding "$kind" "$account" "$scope"
  } | member apply --server-side --force-conflicts --field-manager=create-kubeconfig-secret -f - > /dev/null
}

# binding prints a binding of the role of that kind and name.
binding() {
  cat <<MANIFEST
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ${1}Binding
metadata:
  name: $2
$3
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: $1
  name: $2
subjects:
- kind: ServiceAccount
  name: $account
  namespace: $namespace
MANIFEST
}

# field prints a field of the member's cluster in the kubeconfig.
field() { member config view --minify --flatten --raw -o "jsonpath={.clusters[0].cluster.$1}"; }

# optional prints a line of a kubeconfig if the member's cluster has the field.
optional() {
  local value
  value=$(field "$1")
  [ -z "$value" ] || echo "    $1: \"$value\""
}

print_kubeconfig() {
  local token address
  [ "$(field insecure-skip-tls-verify)" != true ] || fail "context $context does not verify the certificate of the cluster, which the controller would refuse"
  token=$(member create token "$account" --namespace "$namespace" --duration "$duration")
  address=${server:-$(field server)}
  cat <<KUBECONFIG
apiVersion: v1
kind: Config
current-context: "$name"
clusters:
- name: "$name"
  cluster:
    server: "$address"
$(optional certificate-authority-data)
$(optional tls-server-name)
$(optional proxy-url)
contexts:
- name: "$name"
  context: {cluster: "$name", user: "$account"}
users:
- name: "$account"
  user:
    token: "$token"
KUBECONFIG
}

[ "$create_rbac" = no ] || create_permissions
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
(umask 077 && print_kubeconfig > "$directory/kubeconfig")
# Server-side, so that no annotation has a copy of the Secret.
manage create secret generic "$name" --namespace "$namespace" --from-file "$directory/kubeconfig" --dry-run=client -o yaml |
  manage label --local -f - sigs.k8s.io/multicluster-runtime-kubeconfig=true -o yaml |
  manage apply --server-side --force-conflicts --field-manager=create-kubeconfig-secret -f - > /dev/null
echo "Secret $namespace/$name has the kubeconfig of $context"
