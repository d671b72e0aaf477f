#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that are missing, and nothing where none is. Asks nothing; says what
# to do where it may not install, or where there is no network. With the argument `bench` also the
# tools that only `make bench` compares with.
set -eu

# What is looked for: a command, or a file that a development package brings; and its package.
wanted() {
  cat <<'LIST'
clang            clang
llvm-strip       llvm
clang-format     clang-format
/usr/include/libelf.h libelf-dev
/usr/include/zlib.h zlib1g-dev
pkg-config       pkg-config
bpftool          bpftool
cc               gcc
c++              g++
git              git
column           bsdextrautils
nginx            nginx-light
redis-server     redis-server
redis-benchmark  redis-tools
mariadbd         mariadb-server-core
wrk              wrk
/usr/bin/python3 python3
/usr/lib/python3/dist-packages/fusepy.py python3-fusepy
prove            perl
chromium         chromium
ip               iproute2
ps               procps
javac            default-jdk-headless
qemu-system-x86_64 qemu-system-x86
busybox          busybox-static
cpio             cpio
man              man-db
LIST
  [ "${1-}" != bench ] || cat <<'LIST'
perf             linux-perf
strace           strace
bpftrace         bpftrace
offcputime       libbpf-tools
LIST
}

PATH=$PATH:/usr/sbin:/sbin
export PATH

# Language toolchains are not ours to install.
for tool in cargo:Rust:https://rustup.rs go:Go:https://go.dev/dl node:Node.js:https://nodejs.org npm:npm:https://nodejs.org; do
  name=${tool%%:*}
  rest=${tool#*:}
  if ! command -v "$name" >/dev/null; then
    echo "install-deps: \`$name\` is missing; install ${rest%%:*} from ${rest#*:}" >&2
    exit 1
  fi
done

missing=$(wanted "$@" | while read -r what package; do
  case $what in
  /*) [ -e "$what" ] || echo "$package" ;;
  *) command -v "$what" >/dev/null || echo "$package" ;;
  esac
done | sort -u | tr '\n' ' ')
missing=${missing% }

[ -n "$missing" ] || exit 0
echo "install-deps: missing: $missing"
if ! command -v apt-get >/dev/null; then
  echo "install-deps: this is no Debian; install these packages or their like by hand" >&2
  exit 1
fi
if [ "$(id -u)" != 0 ]; then
  echo "install-deps: run as root: apt-get install --no-install-recommends $missing" >&2
  exit 1
fi

# Some packages start a daemon once they are installed. We need the programs, not the daemons.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  trap 'rm -f $policy' EXIT
  trap 'exit 1' INT TERM
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod 755 $policy
fi

export DEBIAN_FRONTEND=noninteractive
apt="apt-get -y -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3"
# shellcheck disable=SC2086
if ! { $apt update && $apt install --no-install-recommends $missing; } </dev/null; then
  echo "install-deps: apt-get failed; is there a network and a package mirror? Still missing: $missing" >&2
  exit 1
fi
