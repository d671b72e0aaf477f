// SPDX-License-Identifier: Apache-2.0
//! Programs that poll by choice: a thread of a poll-mode driver has a CPU of its own and asks its device for ever.
//! That it is busy says nothing about its load.

use super::code::Code;

/// A kind of program that polls by choice.
#[derive(Debug, PartialEq, Eq)]
pub struct Poller {
    /// What it is, as in `of …`.
    pub name: &'static str,
    /// What tells its load instead.
    pub load: &'static str,
    /// Parts of its functions' names.
    symbols: &'static [&'static str],
    /// Beginnings of its threads' names.
    threads: &'static [&'static str],
}

static KNOWN: &[Poller] = &[
    Poller {
        name: "a poll-mode network driver (DPDK and its like)",
        load: "the driver's own counters (empty polls, drops at the device: `ethtool -S`, `dpdk-telemetry`, `pmd-stats-show`)",
        symbols: &["_recv_pkts", "_rx_burst", "_xmit_pkts", "_tx_burst", "rte_ring_dequeue", "virtio_dev_tx_"],
        threads: &["lcore-", "dpdk-", "pmd-", "vpp_wk_", "rte-worker-"],
    },
    Poller {
        name: "a poll-mode storage driver (SPDK)",
        load: "its own counters (`rpc.py framework_get_reactors`, `bdev_get_iostat`)",
        symbols: &["spdk_nvme_qpair_process", "nvme_pcie_qpair_process", "spdk_thread_poll"],
        threads: &[],
    },
    Poller {
        name: "a network stack in user space (Onload, ef_vi, Seastar)",
        load: "its own counters (`onload_stackdump`, the framework's metrics)",
        symbols: &["ef_eventq_poll", "ci_netif_poll", "seastar::reactor::poll"],
        threads: &[],
    },
];

/// The poller that a thread of this name with these functions on its stack works for.
pub fn of<'a>(thread: &str, stack: impl IntoIterator<Item = &'a Code>) -> Option<&'static Poller> {
    let by_function = |code: &Code| KNOWN.iter().find(|p| p.symbols.iter().any(|s| code.symbol.contains(s)));
    let by_thread = || KNOWN.iter().find(|p| p.threads.iter().any(|name| thread.starts_with(name)));
    stack.into_iter().find_map(by_function).or_else(by_thread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::Part;

    #[test]
    fn by_function_or_thread() {
        let code = |symbol: &str| {
            let [symbol, module, kind, source] = [symbol, "svc", "native", ""].map(str::to_string);
            Code { symbol, module, offset: 0, kind, source, part: Part::Own }
        };
        assert!(of("worker", &[code("ixgbe_recv_pkts_vec"), code("main_loop")]).is_some());
        assert!(of("lcore-worker-3", &[code("main_loop")]).is_some());
        assert!(of("worker", &[code("recv_request"), code("mio_reactor_run")]).is_none());
    }
}
