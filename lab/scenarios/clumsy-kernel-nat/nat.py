# SPDX-License-Identifier: Apache-2.0
"""Clients behind one address: `nat.py CLIENTS loose|strict COMMAND...` makes a network namespace for each, becomes their
gateway, which hides them behind its own address and forgets them soon, and runs the command in each of them.

A strict gateway lets nothing out of a connection that was not answered but its first packet: so does many a firewall."""

import pathlib
import shlex
import subprocess
import sys

CLIENTS, STRICT, COMMAND = int(sys.argv[1]), sys.argv[2] == "strict", shlex.join(sys.argv[3:])
RULES = """table ip lab {
  chain after { type nat hook postrouting priority 100; oifname "far" masquerade; }
}
"""
UNANSWERED = """table ip strict {
  chain through { type filter hook forward priority 0; ct status ! assured tcp flags & (fin|syn|rst|ack) == ack drop; }
}
"""


def run(command):
    subprocess.run(command.split(), check=True)


def sysctl(name, value):
    pathlib.Path("/proc/sys/net", name).write_text(value)


sysctl("ipv4/ip_forward", "1")
subprocess.run(["nft", "-f", "-"], input=RULES + UNANSWERED * STRICT, text=True, check=True)
sysctl("netfilter/nf_conntrack_tcp_timeout_time_wait", "1")
sysctl("netfilter/nf_conntrack_tcp_timeout_close", "1")
loads = []
for client in range(1, CLIENTS + 1):
    # It waits until its network is there.
    script = "read go; cd /proc/sys/net/ipv4; echo 40000 41999 > ip_local_port_range; echo 1 > tcp_tw_reuse; cd - > /dev/null; "
    load = subprocess.Popen(["unshare", "-n", "sh", "-c", f"{script} exec {COMMAND}"], stdin=subprocess.PIPE, text=True)
    pid = load.pid
    # The program becomes `sh` after it has left our namespace.
    while pathlib.Path(f"/proc/{pid}/comm").read_text().strip() != "sh":
        pass
    run(f"ip link add c{client} type veth peer name out netns {pid}")
    run(f"ip addr add 10.204.{client}.1/24 dev c{client}")
    run(f"ip link set c{client} up")
    inside = f"nsenter -t {pid} -n ip"
    run(f"{inside} addr add 10.204.{client}.2/24 dev out")
    run(f"{inside} link set out up")
    run(f"{inside} route add default via 10.204.{client}.1")
    loads.append(load)
# All at once: the first one's load is not to be seen alone.
for load in loads:
    load.stdin.write("go\n")
    load.stdin.close()
for load in loads:
    load.wait()
