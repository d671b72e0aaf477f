#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes target/wakewalk_VERSION_ARCH.deb out of what is built: the static binary, man pages, completions, licences
# and the changelog. With --check it is also unpacked, installed into a root of its own, and looked at.
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
arch=$(dpkg --print-architecture)
deb=$target/wakewalk_${version}_$arch.deb
root=$target/deb/root
doc=$root/usr/share/doc/wakewalk

# Crates that are linked into the binary, with their licences.
crates() {
  cargo tree --locked --package wakewalk --edges normal,no-proc-macro --prefix none --format '{p} {l}' |
    grep -v "($PWD" | sed 's/ (\*)$//' | sort -u | sed 's/^\([^ ]*\) v\([^ ]*\) /  \1 \2: /'
}

copyright() {
  cat <<TEXT
wakewalk is under the Apache License, version 2.0 (/usr/share/common-licenses/Apache-2.0). The programs that it
loads into the kernel are under that licence or the GNU General Public License, version 2
(/usr/share/common-licenses/GPL-2), as you choose.

The binary is linked statically with these libraries, whose sources Debian and the Rust package registry have:

  GNU C library: LGPL-2.1-or-later
  libelf (elfutils): GPL-2.0-or-later or LGPL-3.0-or-later
  zlib: Zlib
  libbpf: LGPL-2.1 or BSD-2-Clause
  Zstandard: BSD-3-Clause or GPL-2.0
$(crates)
TEXT
}

control() {
  cat <<TEXT
Package: wakewalk
Version: $version
Architecture: $arch
Maintainer: The wakewalk authors <wakewalk@localhost>
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Section: admin
Priority: optional
Description: finds out why a networked service is slow or burns CPU
 Watches one service for ten seconds with BPF programs, puts every millisecond
 of every thread on a ledger, and gives a verdict: the cause with its evidence,
 the rival causes with what rules each out, what could not be seen, and what
 the look itself cost.
 .
 The binary is static and needs nothing but Linux with BTF.
TEXT
}

make_root() {
  rm -rf "$target/deb"
  mkdir -p "$root/DEBIAN" "$root/usr/bin" "$doc" "$root/usr/share/man/man1" \
    "$root/usr/share/bash-completion/completions" "$root/usr/share/zsh/vendor-completions" \
    "$root/usr/share/fish/vendor_completions.d"
  strip -o "$root/usr/bin/wakewalk" "$target/release/wakewalk"
  paper=$target/deb/paper
  "$(dirname "$(realpath "$target/release/wakewalk")")/examples/paperwork" "$paper"
  for page in "$paper"/*.1; do
    gzip -9n <"$page" >"$root/usr/share/man/man1/${page##*/}.gz"
  done
  cp "$paper/wakewalk.bash" "$root/usr/share/bash-completion/completions/wakewalk"
  cp "$paper/_wakewalk" "$root/usr/share/zsh/vendor-completions/"
  cp "$paper/wakewalk.fish" "$root/usr/share/fish/vendor_completions.d/"
  copyright >"$doc/copyright"
  gzip -9n <CHANGELOG.md >"$doc/changelog.gz"
  control >"$root/DEBIAN/control"
  find "$root" -type d -exec chmod 755 {} +
  find "$root" -type f -exec chmod 644 {} +
  chmod 755 "$root/usr/bin/wakewalk"
}

checks=0 failed=0
check() { # what, command
  what=$1
  shift
  checks=$((checks + 1))
  if said=$("$@" 2>&1); then
    echo "ok   $what"
  else
    failed=$((failed + 1))
    echo "FAIL $what: $said"
  fi
}

installs() {
  mkdir -p "$fresh/var/lib/dpkg/info" "$fresh/var/lib/dpkg/updates"
  : >"$fresh/var/lib/dpkg/status"
  dpkg --root="$fresh" --force-not-root --force-script-chrootless --log=/dev/null -i "$deb" &&
    [ "$(dpkg-query --admindir="$fresh/var/lib/dpkg" -W -f '${Status}' wakewalk)" = "install ok installed" ]
}

# The formatter has nothing to complain of, and the page names the command.
reads() { # page
  complaints=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$1" 2>&1 >/dev/null)
  [ -z "$complaints" ] || { echo "$complaints"; return 1; }
  MANWIDTH=80 man -l "$1" 2>/dev/null | grep -q wakewalk
}

# Every option of `--help` is on its man page and in the completions.
complete() { # page or file, arguments of wakewalk
  file=$1
  shift
  text=$(case $file in *.gz) zcat "$file" ;; *) cat "$file" ;; esac | sed 's/\\-/-/g')
  for option in $("$target/release/wakewalk" "$@" --help | grep -Eo '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -Eo -- '--[a-z-]+'); do
    case $text in *"$option"*) ;; *) echo "$option is missing in $file"; return 1 ;; esac
  done
}

# A page for each command that `--help` lists.
pages() { # folder
  for command in $("$target/release/wakewalk" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    [ "$command" = help ] || [ -s "$1/wakewalk-$command.1.gz" ] || { echo "wakewalk-$command has none"; return 1; }
  done
  [ -n "${command:-}" ] && [ -s "$1/wakewalk.1.gz" ]
}

check_package() {
  fresh=$target/deb/installed
  man1=$fresh/usr/share/man/man1
  bash=$fresh/usr/share/bash-completion/completions/wakewalk
  check "the package installs into an empty root" installs
  check "its binary is static and runs" "$fresh/usr/bin/wakewalk" --version
  for page in "$man1"/*.gz; do
    check "man page ${page##*/}" reads "$page"
  done
  check "a page for each command" pages "$man1"
  check "the options of --help are on the pages" complete "$man1/wakewalk-diagnose.1.gz" diagnose
  check "bash takes the completions" bash -n "$bash"
  check "the options of --help are completed" complete "$bash" diagnose
  check "licences and changelog are there" test -s "$fresh/usr/share/doc/wakewalk/copyright" -a \
    -s "$fresh/usr/share/doc/wakewalk/changelog.gz"
  echo "$((checks - failed)) of $checks checks of the package passed"
  [ "$failed" = 0 ]
}

make_root
dpkg-deb --root-owner-group --build "$root" "$deb" >/dev/null
echo "$deb"
[ "${1:-}" != --check ] || check_package
