#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `clients.sh PORT KEPT PAUSE`: a program that never closes its connections keeps some, and others connect, one after the
# other, each for a greeting.
set -u
port=$1 kept=$2 pause=$3
for ((i = 0; i < kept; i++)); do
	exec {fd}<>"/dev/tcp/127.0.0.1/$port"
done
while :; do
	if exec {fd}<>"/dev/tcp/127.0.0.1/$port"; then
		read -r -t 1 -N 5 -u "$fd" _ 2>/dev/null
		exec {fd}>&-
	fi
	sleep "$pause"
done
