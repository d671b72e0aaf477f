// SPDX-License-Identifier: Apache-2.0
//! Answers that say that the service has failed, where their first bytes were looked at (`--requests`).

use super::floors::enough_requests;
use super::{Above, find_out};
use crate::case::Case;
use crate::facts::labels::{Labelled, Labels, Place};
use crate::wording::{count, percent, port, word};

/// Of the answers: one in a hundred that fails is no everyday number, whoever asks.
const MANY: f64 = 0.01;

/// The places where too many fail.
pub(super) fn failed(case: &Case) -> Vec<Above> {
    of(case, |_| true)
}

/// Of those the target's own.
pub(super) fn to_clients(case: &Case) -> Vec<Above> {
    of(case, |place| place.accepted)
}

fn of(case: &Case, is_one: fn(&Place) -> bool) -> Vec<Above> {
    let Ok(labels) = case.fact::<Labels>() else { return Vec::new() };
    let is_many = |failed: f64, share: f64| failed >= enough_requests(share) && share >= MANY;
    let fails = |p: &&Place| is_many(p.outcomes.failed, p.outcomes.failed_share());
    let upstream = labels.places.iter().filter(|place| !place.accepted).filter(fails);
    let root = upstream.max_by(|a, b| a.outcomes.failed.total_cmp(&b.outcomes.failed));
    let found = labels.places.iter().filter(|place| is_one(place)).filter(fails);
    found.map(|place| told(place, root.filter(|root| place.accepted && is_why(root, place)))).collect()
}

/// Whether whom it asks fails so often that its own answers may fail for that.
fn is_why(asked: &Place, own: &Place) -> bool {
    asked.outcomes.failed_share() >= own.outcomes.failed_share() * OF_ITS_OWN
}

/// Of the share of its own answers that fail, for whom it asks to be why.
const OF_ITS_OWN: f64 = 0.5;

fn told(place: &Place, root: Option<&Place>) -> Above {
    let name = place.name.trim_start_matches("tcp ");
    let (failed, share) = (place.outcomes.failed, place.outcomes.failed_share());
    let whose = if place.accepted { format!("at {name}") } else { format!("of {name}, which it asks,") };
    let worst = worst(place);
    let most = worst.filter(|_| place.labels.len() > 1).map_or_else(String::new, |worst| {
        format!("; most of them to {}: {}", worst.label, percent(worst.outcomes.failed_share()))
    });
    Above {
        what: format!(
            "{} answers {whose} say that they failed, of {} ({}){most}",
            count(failed),
            count(place.outcomes.all),
            percent(share)
        ),
        share,
        advice: match root {
            Some(root) => format!(
                "first see why {} of the answers of {} fail: `{}`",
                percent(root.outcomes.failed_share()),
                root.name,
                look(root)
            ),
            None => find_out(&look(place)),
        },
        about: "",
    }
}

/// The label of which most fail.
fn worst(place: &Place) -> Option<&Labelled> {
    place.labels.iter().max_by(|a, b| a.outcomes.failed.total_cmp(&b.outcomes.failed))
}

/// A command that shows why, by that label.
fn look(place: &Place) -> String {
    let (protocol, label) = worst(place).map_or(("", ""), |worst| (worst.protocol.as_str(), worst.label.as_str()));
    see(protocol, place.name.trim_start_matches("tcp "), label)
}

/// A command that shows why.
fn see(protocol: &str, name: &str, label: &str) -> String {
    let address = name.replace("0.0.0.0:", "127.0.0.1:").replace("[::]:", "[::1]:");
    match protocol {
        "redis" => {
            let port = port(name).map_or_else(String::new, |port| format!("-p {port} "));
            format!("redis-cli {port}info errorstats")
        }
        "postgresql" => "psql -c 'select datname, xact_rollback, deadlocks from pg_stat_database'".to_string(),
        "mysql" => "mysql -e 'select * from performance_schema.events_errors_summary_global_by_error where sum_error_raised > 0'".to_string(),
        _ => {
            let path = label.split_once(' ').map_or("/", |(_, path)| path);
            format!("curl -si {}", word(&format!("http://{address}{path}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::above;
    use crate::case::Case;
    use recording::text::parse;

    fn errors(ok: u32, failed: u32, what: &str) -> Vec<(String, String)> {
        let text = format!(
            "meta host.arch=x86_64 length_ns=1e9 target.listen=[\"tcp 0.0.0.0:80\"]
             label t_ns=1 port=80 {what} label=\"GET /a\" outcome=ok seen={ok} count={ok}
             label t_ns=1 port=80 {what} label=\"GET /b\" outcome=failed seen={failed} count={failed}"
        );
        let all = above(&Case::new(&parse(&text).unwrap()));
        all.into_iter().map(|error| (error.what, error.advice)).collect()
    }

    #[test]
    fn one_in_a_hundred_is_too_many() {
        let all = errors(900, 100, "role=accepted protocol=http");
        let what = "100 answers at 0.0.0.0:80 say that they failed, of 1000 (10 %); most of them to GET /b: 100 %";
        assert_eq!(all, [(what.to_string(), "find out why: `curl -si http://127.0.0.1:80/b`".to_string())]);
        assert!(errors(9000, 50, "role=accepted protocol=http").is_empty(), "everyday numbers");
        assert!(errors(9, 2, "role=accepted protocol=http").is_empty(), "too few");
        assert_eq!(
            errors(20, 3, "role=accepted protocol=http").len(),
            1,
            "one in ten, of a service that is asked little"
        );
    }

    #[test]
    fn errors_of_whom_it_asks() {
        let all = errors(900, 100, "role=made peer=10.0.0.9:6379 protocol=redis");
        assert!(all[0].0.starts_with("100 answers of 10.0.0.9:6379, which it asks, say"), "{all:?}");
        assert_eq!(all[0].1, "find out why: `redis-cli -p 6379 info errorstats`");
    }

    /// What it asks fails as often: its own answers say so, and the reason stands there.
    #[test]
    fn failures_of_whom_it_asks_come_first() {
        let text = |asked_failed: u32| {
            format!(
                "meta host.arch=x86_64 length_ns=1e9 target.listen=[\"tcp 0.0.0.0:80\"]
                 label t_ns=1 port=80 role=accepted protocol=http label=\"GET /a\" outcome=failed seen=100 count=100
                 label t_ns=1 port=80 role=accepted protocol=http label=\"GET /a\" outcome=ok seen=100 count=100
                 label t_ns=1 role=made peer=10.0.0.9:81 protocol=http label=\"GET /b\" outcome=failed seen={asked_failed} count={asked_failed}
                 label t_ns=1 role=made peer=10.0.0.9:81 protocol=http label=\"GET /b\" outcome=ok seen=300 count=300"
            )
        };
        let advice = |failed| {
            let all = above(&Case::new(&parse(&text(failed)).unwrap()));
            all.into_iter().find(|error| error.what.contains("at 0.0.0.0:80")).unwrap().advice
        };
        assert_eq!(
            advice(300),
            "first see why 50 % of the answers of 10.0.0.9:81 fail: `curl -si http://10.0.0.9:81/b`"
        );
        assert_eq!(advice(30), "find out why: `curl -si http://127.0.0.1:80/a`", "hardly for that");
    }

    #[test]
    fn whoever_is_asked_chooses_no_words_of_the_command() {
        let advice = |protocol: &str| {
            let peer = "\"10.0.0.9:1;curl x\"";
            errors(900, 100, &format!("role=made peer={peer} protocol={protocol}")).remove(0).1
        };
        assert_eq!(advice("redis"), "find out why: `redis-cli info errorstats`");
        assert_eq!(advice("http"), "find out why: `curl -si 'http://10.0.0.9:1;curl x/b'`");
    }
}
