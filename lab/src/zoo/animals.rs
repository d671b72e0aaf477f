// SPDX-License-Identifier: Apache-2.0
//! The list of servers. One is a line here, and a file of `animals/`, alone or with its relatives.

mod apache;
mod caches;
mod databases;
mod erlang;
mod event_loops;
mod go;
mod java;
mod mail;
mod messages;
mod names;
mod php;
mod pools;
mod proxies;
mod python;
mod redis;
mod ruby;
mod ssh;
mod tls;
mod web;

use super::animal::Animal;

/// All of them; first those that need nothing that the lab does not need for itself.
pub static ALL: &[&Animal] = &[
    &web::NGINX,
    &redis::REDIS,
    &redis::PUBSUB,
    &redis::UNIX,
    &event_loops::NODE,
    &event_loops::NODE_CLUSTER,
    &event_loops::ASYNCIO,
    &go::JSON,
    &go::QUIET,
    &go::PROXY,
    &go::STORE,
    &tls::NGINX,
    &tls::FRONT,
    &tls::NODE,
    &go::LONG_POLL,
    &java::POOL,
    &java::FORK_JOIN,
    &pools::LEADER,
    &pools::QUEUE,
    &databases::MARIADB,
    &java::VIRTUAL,
    &pools::TOKIO,
    &web::LIGHTTPD,
    &apache::PREFORK,
    &apache::EVENT,
    &php::FPM,
    &python::UVICORN,
    &python::GUNICORN_SYNC,
    &python::GUNICORN_THREADS,
    &ruby::PUMA,
    &proxies::HAPROXY,
    &proxies::SQUID,
    &proxies::VARNISH,
    &caches::MEMCACHED,
    &databases::POSTGRES,
    &databases::BACKEND,
    &databases::ETCD,
    &erlang::INETS,
    &messages::RABBITMQ,
    &messages::MOSQUITTO,
    &names::DNSMASQ,
    &names::UNBOUND,
    &names::BIND,
    &mail::EXIM,
    &ssh::TUNNEL,
];
