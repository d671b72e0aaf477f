// SPDX-License-Identifier: Apache-2.0
//! The list of scenarios. One is a folder of `lab/scenarios/` and two lines here.

mod clients;

use clients::{full_load, own_load, reconnecting_load, steady_client, steady_load};

use crate::builds::Build;
use crate::scenario::Scenario;

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

/// All of them: first those with a fault, then the controls, which accuse nobody.
pub static ALL: &[&Scenario] = &[
    &busy_poll::SCENARIO,
    &hot_code::SCENARIO,
    &hot_jit::SCENARIO,
    &spin_lock::SCENARIO,
    &spin_select::SCENARIO,
    &many_small_polls::SCENARIO,
    &cpu_quota::SCENARIO,
    &noisy_neighbour::SCENARIO,
    &slow_store::SCENARIO,
    &slow_store_netns::SCENARIO,
    &dripping_store::SCENARIO,
    &connection_limit::SCENARIO,
    &crashing_workers::SCENARIO,
    &broken_upstream::SCENARIO,
    &silent_store::SCENARIO,
    &silent_endpoint::SCENARIO,
    &unreached_address::SCENARIO,
    &slow_accept::SCENARIO,
    &slow_clients::SCENARIO,
    &slow_uploads::SCENARIO,
    &pool_kept::SCENARIO,
    &never_taken::SCENARIO,
    &expect_continue::SCENARIO,
    &left_listener::SCENARIO,
    &limited_asking::SCENARIO,
    &early_head::SCENARIO,
    &endless_loop::SCENARIO,
    &sleep_in_path::SCENARIO,
    &worker_naps::SCENARIO,
    &lock_convoy::SCENARIO,
    &lock_convoy_rust::SCENARIO,
    &lock_convoy_tokio::SCENARIO,
    &given_away::SCENARIO,
    &lock_convoy_java::SCENARIO,
    &fsync::SCENARIO,
    &log_to_slow_pipe::SCENARIO,
    &gc_pause::SCENARIO,
    &gc_pause_java::SCENARIO,
    &gc_pause_node::SCENARIO,
    &three_tiers::SCENARIO,
    &hanging_requests::SCENARIO,
    &hidden_queue::SCENARIO,
    &interpreter_lock::SCENARIO,
    &loop_sleeps::SCENARIO,
    &loop_asks::SCENARIO,
    &loop_held::SCENARIO,
    &loop_starts::SCENARIO,
    &queue_workers::SCENARIO,
    &slow_endpoint::SCENARIO,
    &redis_keys::SCENARIO,
    &accept_queue::SCENARIO,
    &accept_queue_node::SCENARIO,
    &clumsy_kernel::SCENARIO,
    &fd_limit::SCENARIO,
    &loss::SCENARIO,
    &syn_limit::SCENARIO,
    &loss_netns::SCENARIO,
    &loss_upstream::SCENARIO,
    &no_route_back::SCENARIO,
    &clumsy_kernel_nat::SCENARIO,
    &port_exhaustion::SCENARIO,
    &udp_unread::SCENARIO,
    &small_pool::SCENARIO,
    &small_workers::SCENARIO,
    &kept_open::SCENARIO,
    &read_in_part::SCENARIO,
    &unix_workers::SCENARIO,
    &database_full::SCENARIO,
    &dns_stall::SCENARIO,
    &dns_silent::SCENARIO,
    &major_faults::SCENARIO,
    &mmap_lock::SCENARIO,
    &few_slow::SCENARIO,
    &stands_still::SCENARIO,
    &deadlock::SCENARIO,
    &keeper_stands::SCENARIO,
    &flock::SCENARIO,
    &fuse_slow::SCENARIO,
    &stopped::SCENARIO,
    &nagle_held::SCENARIO,
    &corked::SCENARIO,
    &alvin::SCENARIO,
    &alvin_netns::SCENARIO,
    &header_first::SCENARIO,
    &alvin_slow_store::SCENARIO,
    &slow_reader::SCENARIO,
    &small_rcvbuf::SCENARIO,
    &small_sndbuf::SCENARIO,
    &link_saturated::SCENARIO,
    &slow_start::SCENARIO,
    &slow_start_idle::SCENARIO,
    &churn::SCENARIO,
    &churn_own::SCENARIO,
    &fresh_upstream::SCENARIO,
    &behind_tls::SCENARIO,
    &slow_handshake::SCENARIO,
    &slow_handshake_own::SCENARIO,
    &many_questions::SCENARIO,
    &loop_pool::SCENARIO,
    &gc_tail_java::SCENARIO,
    &shell_out::SCENARIO,
    &shell_out_node::SCENARIO,
    &frozen_clients::SCENARIO,
    &frozen_service::SCENARIO,
    &row_lock::SCENARIO,
    &row_lock_postgres::SCENARIO,
    &one_clerk::SCENARIO,
    &lost_signal::SCENARIO,
    &open_transaction::SCENARIO,
    &open_transaction_mariadb::SCENARIO,
    &never_closed::SCENARIO,
    &long_polls::SCENARIO,
    &event_streams::SCENARIO,
    &nginx_static::SCENARIO,
    &java_idle_pool::SCENARIO,
    &redis_load::SCENARIO,
    &go_small_gc::SCENARIO,
    &go_json_saturated::SCENARIO,
    &poll_with_work::SCENARIO,
    &prefork_behind_proxy::SCENARIO,
    &pool_one_core::SCENARIO,
    &gc_idle::SCENARIO,
    &io_uring::SCENARIO,
    &compactor::SCENARIO,
];

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
