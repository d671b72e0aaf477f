// SPDX-License-Identifier: Apache-2.0
//! The scenarios. One is a folder of `lab/scenarios/`, two lines here and one in `all.rs`.

mod all;
mod clients;

pub use all::ALL;
use clients::{full_load, own_load, reconnecting_load, steady_client, steady_load};

use crate::builds::Build;

#[path = "../scenarios/accept-queue/scenario.rs"]
mod accept_queue;
#[path = "../scenarios/accept-queue-node/scenario.rs"]
mod accept_queue_node;
#[path = "../scenarios/alvin/scenario.rs"]
mod alvin;
#[path = "../scenarios/alvin-netns/scenario.rs"]
mod alvin_netns;
#[path = "../scenarios/alvin-slow-store/scenario.rs"]
mod alvin_slow_store;
#[path = "../scenarios/behind-tls/scenario.rs"]
mod behind_tls;
#[path = "../scenarios/broken-upstream/scenario.rs"]
mod broken_upstream;
#[path = "../scenarios/busy-poll/scenario.rs"]
pub mod busy_poll;
#[path = "../scenarios/churn/scenario.rs"]
mod churn;
#[path = "../scenarios/churn-own/scenario.rs"]
mod churn_own;
#[path = "../scenarios/clumsy-kernel/scenario.rs"]
mod clumsy_kernel;
#[path = "../scenarios/clumsy-kernel-nat/scenario.rs"]
mod clumsy_kernel_nat;
#[path = "../scenarios/compactor/scenario.rs"]
mod compactor;
#[path = "../scenarios/connection-limit/scenario.rs"]
mod connection_limit;
#[path = "../scenarios/consumer-beside/scenario.rs"]
mod consumer_beside;
#[path = "../scenarios/corked/scenario.rs"]
mod corked;
#[path = "../scenarios/cpu-quota/scenario.rs"]
mod cpu_quota;
#[path = "../scenarios/crashing-workers/scenario.rs"]
mod crashing_workers;
#[path = "../scenarios/database-full/scenario.rs"]
mod database_full;
#[path = "../scenarios/deadlock/scenario.rs"]
mod deadlock;
#[path = "../scenarios/dns-silent/scenario.rs"]
mod dns_silent;
#[path = "../scenarios/dns-stall/scenario.rs"]
mod dns_stall;
#[path = "../scenarios/dripping-store/scenario.rs"]
mod dripping_store;
#[path = "../scenarios/early-head/scenario.rs"]
mod early_head;
#[path = "../scenarios/endless-loop/scenario.rs"]
mod endless_loop;
#[path = "../scenarios/event-streams/scenario.rs"]
mod event_streams;
#[path = "../scenarios/expect-continue/scenario.rs"]
mod expect_continue;
#[path = "../scenarios/fd-limit/scenario.rs"]
mod fd_limit;
#[path = "../scenarios/few-slow/scenario.rs"]
mod few_slow;
#[path = "../scenarios/flock/scenario.rs"]
mod flock;
#[path = "../scenarios/fresh-upstream/scenario.rs"]
mod fresh_upstream;
#[path = "../scenarios/frozen-clients/scenario.rs"]
mod frozen_clients;
#[path = "../scenarios/frozen-service/scenario.rs"]
mod frozen_service;
#[path = "../scenarios/fsync/scenario.rs"]
mod fsync;
#[path = "../scenarios/fuse-slow/scenario.rs"]
mod fuse_slow;
#[path = "../scenarios/gc-idle/scenario.rs"]
mod gc_idle;
#[path = "../scenarios/gc-pause/scenario.rs"]
mod gc_pause;
#[path = "../scenarios/gc-pause-java/scenario.rs"]
mod gc_pause_java;
#[path = "../scenarios/gc-pause-node/scenario.rs"]
mod gc_pause_node;
#[path = "../scenarios/gc-tail-java/scenario.rs"]
mod gc_tail_java;
#[path = "../scenarios/given-away/scenario.rs"]
mod given_away;
#[path = "../scenarios/go-json-saturated/scenario.rs"]
mod go_json_saturated;
#[path = "../scenarios/go-small-gc/scenario.rs"]
mod go_small_gc;
#[path = "../scenarios/hanging-requests/scenario.rs"]
mod hanging_requests;
#[path = "../scenarios/header-first/scenario.rs"]
mod header_first;
#[path = "../scenarios/health-port/scenario.rs"]
mod health_port;
#[path = "../scenarios/hidden-queue/scenario.rs"]
mod hidden_queue;
#[path = "../scenarios/hot-code/scenario.rs"]
mod hot_code;
#[path = "../scenarios/hot-jit/scenario.rs"]
mod hot_jit;
#[path = "../scenarios/interpreter-lock/scenario.rs"]
mod interpreter_lock;
#[path = "../scenarios/io-uring/scenario.rs"]
mod io_uring;
#[path = "../scenarios/java-idle-pool/scenario.rs"]
mod java_idle_pool;
#[path = "../scenarios/keeper-stands/scenario.rs"]
mod keeper_stands;
#[path = "../scenarios/kept-open/scenario.rs"]
mod kept_open;
#[path = "../scenarios/left-listener/scenario.rs"]
mod left_listener;
#[path = "../scenarios/limited-asking/scenario.rs"]
mod limited_asking;
#[path = "../scenarios/link-saturated/scenario.rs"]
mod link_saturated;
#[path = "../scenarios/lock-convoy/scenario.rs"]
mod lock_convoy;
#[path = "../scenarios/lock-convoy-java/scenario.rs"]
mod lock_convoy_java;
#[path = "../scenarios/lock-convoy-rust/scenario.rs"]
mod lock_convoy_rust;
#[path = "../scenarios/lock-convoy-tokio/scenario.rs"]
mod lock_convoy_tokio;
#[path = "../scenarios/log-to-slow-pipe/scenario.rs"]
mod log_to_slow_pipe;
#[path = "../scenarios/long-polls/scenario.rs"]
mod long_polls;
#[path = "../scenarios/loop-asks/scenario.rs"]
mod loop_asks;
#[path = "../scenarios/loop-held/scenario.rs"]
mod loop_held;
#[path = "../scenarios/loop-pool/scenario.rs"]
mod loop_pool;
#[path = "../scenarios/loop-sleeps/scenario.rs"]
mod loop_sleeps;
#[path = "../scenarios/loop-starts/scenario.rs"]
mod loop_starts;
#[path = "../scenarios/loops-held/scenario.rs"]
mod loops_held;
#[path = "../scenarios/loss/scenario.rs"]
mod loss;
#[path = "../scenarios/loss-netns/scenario.rs"]
mod loss_netns;
#[path = "../scenarios/loss-upstream/scenario.rs"]
mod loss_upstream;
#[path = "../scenarios/lost-signal/scenario.rs"]
mod lost_signal;
#[path = "../scenarios/major-faults/scenario.rs"]
mod major_faults;
#[path = "../scenarios/many-questions/scenario.rs"]
mod many_questions;
#[path = "../scenarios/many-small-polls/scenario.rs"]
mod many_small_polls;
#[path = "../scenarios/mmap-lock/scenario.rs"]
mod mmap_lock;
#[path = "../scenarios/nagle-held/scenario.rs"]
mod nagle_held;
#[path = "../scenarios/never-closed/scenario.rs"]
mod never_closed;
#[path = "../scenarios/never-taken/scenario.rs"]
mod never_taken;
#[path = "../scenarios/nginx-static/scenario.rs"]
mod nginx_static;
#[path = "../scenarios/no-route-back/scenario.rs"]
mod no_route_back;
#[path = "../scenarios/noisy-neighbour/scenario.rs"]
mod noisy_neighbour;
#[path = "../scenarios/one-clerk/scenario.rs"]
mod one_clerk;
#[path = "../scenarios/open-transaction/scenario.rs"]
mod open_transaction;
#[path = "../scenarios/open-transaction-mariadb/scenario.rs"]
mod open_transaction_mariadb;
#[path = "../scenarios/poll-with-work/scenario.rs"]
mod poll_with_work;
#[path = "../scenarios/pool-kept/scenario.rs"]
mod pool_kept;
#[path = "../scenarios/pool-one-core/scenario.rs"]
mod pool_one_core;
#[path = "../scenarios/port-exhaustion/scenario.rs"]
mod port_exhaustion;
#[path = "../scenarios/prefork-behind-proxy/scenario.rs"]
mod prefork_behind_proxy;
#[path = "../scenarios/queue-workers/scenario.rs"]
mod queue_workers;
#[path = "../scenarios/read-in-part/scenario.rs"]
mod read_in_part;
#[path = "../scenarios/redis-keys/scenario.rs"]
mod redis_keys;
#[path = "../scenarios/redis-load/scenario.rs"]
mod redis_load;
#[path = "../scenarios/row-lock/scenario.rs"]
mod row_lock;
#[path = "../scenarios/row-lock-postgres/scenario.rs"]
mod row_lock_postgres;
#[path = "../scenarios/shell-out/scenario.rs"]
mod shell_out;
#[path = "../scenarios/shell-out-node/scenario.rs"]
mod shell_out_node;
#[path = "../scenarios/silent-endpoint/scenario.rs"]
mod silent_endpoint;
#[path = "../scenarios/silent-store/scenario.rs"]
mod silent_store;
#[path = "../scenarios/sleep-in-path/scenario.rs"]
mod sleep_in_path;
#[path = "../scenarios/slow-accept/scenario.rs"]
mod slow_accept;
#[path = "../scenarios/slow-clients/scenario.rs"]
mod slow_clients;
#[path = "../scenarios/slow-endpoint/scenario.rs"]
mod slow_endpoint;
#[path = "../scenarios/slow-handshake/scenario.rs"]
mod slow_handshake;
#[path = "../scenarios/slow-handshake-own/scenario.rs"]
mod slow_handshake_own;
#[path = "../scenarios/slow-reader/scenario.rs"]
mod slow_reader;
#[path = "../scenarios/slow-start/scenario.rs"]
mod slow_start;
#[path = "../scenarios/slow-start-idle/scenario.rs"]
mod slow_start_idle;
#[path = "../scenarios/slow-store/scenario.rs"]
mod slow_store;
#[path = "../scenarios/slow-store-netns/scenario.rs"]
mod slow_store_netns;
#[path = "../scenarios/slow-uploads/scenario.rs"]
mod slow_uploads;
#[path = "../scenarios/small-pool/scenario.rs"]
mod small_pool;
#[path = "../scenarios/small-rcvbuf/scenario.rs"]
mod small_rcvbuf;
#[path = "../scenarios/small-sndbuf/scenario.rs"]
mod small_sndbuf;
#[path = "../scenarios/small-workers/scenario.rs"]
mod small_workers;
#[path = "../scenarios/spin-lock/scenario.rs"]
mod spin_lock;
#[path = "../scenarios/spin-select/scenario.rs"]
mod spin_select;
#[path = "../scenarios/stands-still/scenario.rs"]
mod stands_still;
#[path = "../scenarios/stopped/scenario.rs"]
mod stopped;
#[path = "../scenarios/syn-limit/scenario.rs"]
mod syn_limit;
#[path = "../scenarios/three-tiers/scenario.rs"]
mod three_tiers;
#[path = "../scenarios/udp-unread/scenario.rs"]
mod udp_unread;
#[path = "../scenarios/unix-workers/scenario.rs"]
mod unix_workers;
#[path = "../scenarios/unreached-address/scenario.rs"]
mod unreached_address;
#[path = "../scenarios/worker-naps/scenario.rs"]
mod worker_naps;

/// The CPU that services are kept on, so that their limit is one that the load cannot share.
pub const SERVICE_CPU: &[usize] = &[0];
/// The CPU that load comes from.
pub const LOAD_CPU: &[usize] = &[1];
/// The distribution's: one that a developer built would leave its path in recordings.
pub const PYTHON: &str = "/usr/bin/python3";
/// The client that asks at a steady rate.
const WEBLOAD: Build = Build::Go("lab", "./webload", "webload");
/// A web service with a thread for each connection, which does different things besides.
pub const THREADED: Build = Build::C("lab/threaded/threaded.c", "threaded");

#[cfg(test)]
mod tests;
