#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Process 1 of a guest that tries wakewalk on another kernel. What each step printed, its exit code and
# its recording go to the host as one archive through the second serial line; the host judges.
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
exec >/dev/ttyS0 2>&1
mount -t tmpfs tmpfs /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir -p /tmp/results
cd /tmp/results || exit 1

step() { # name, command
	name=$1
	shift
	echo "guest: $name"
	"$@" >"$name.out" 2>"$name.err"
	echo $? >"$name.code"
}

# A command in a cgroup of its own that may use 30 % of a CPU.
limited() { # name, command
	group=/sys/fs/cgroup/$1
	shift
	mkdir "$group" && echo "30000 100000" >"$group/cpu.max"
	(echo 0 >"$group/cgroup.procs" && exec "$@") &
}

observe() { # name, target
	name=$1
	shift
	step "$name" wakewalk diagnose "$@" --for 8s --json --save "recording.$name"
}

step doctor wakewalk doctor
step doctor.json wakewalk doctor --json

poller &
pid=$!
observe busy-poll --pid $pid
kill $pid

echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
# One that never sleeps, and one that is often woken while its group is held.
for program in spinner bursts; do
	limited "$program" "$program"
	pid=$!
	observe "$program" --pid $pid
	kill $pid
done

echo "guest: done"
stty -F /dev/ttyS1 raw
tar c . >/dev/ttyS1
reboot -f
