// SPDX-License-Identifier: Apache-2.0
//! Answers that say that the service has failed, where their first bytes were looked at (`--requests`).

use super::{Above, MIN_COUNT, find_out};
use crate::case::Case;
use crate::facts::labels::{Labels, Place};
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
    let fails = |p: &&Place| p.outcomes.failed >= MIN_COUNT && p.outcomes.failed_share() >= MANY;
    labels.places.iter().filter(|place| is_one(place)).filter(fails).map(told).collect()
}

fn told(place: &Place) -> Above {
    let name = place.name.trim_start_matches("tcp ");
    let (failed, share) = (place.outcomes.failed, place.outcomes.failed_share());
    let whose = if place.accepted { format!("at {name}") } else { format!("of {name}, which it asks,") };
    let worst = place.labels.iter().max_by(|a, b| a.outcomes.failed.total_cmp(&b.outcomes.failed));
    let most = worst.filter(|_| place.labels.len() > 1).map_or_else(String::new, |worst| {
        format!("; most of them to {}: {}", worst.label, percent(worst.outcomes.failed_share()))
    });
    let protocol = worst.map_or("", |worst| worst.protocol.as_str());
    Above {
        what: format!(
            "{} answers {whose} say that they failed, of {} ({}){most}",
            count(failed),
            count(place.outcomes.all),
            percent(share)
        ),
        share,
        advice: find_out(&see(protocol, name, worst.map_or("", |worst| worst.label.as_str()))),
        about: "",
    }
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
        assert!(errors(9, 5, "role=accepted protocol=http").is_empty(), "too few");
    }

    #[test]
    fn errors_of_whom_it_asks() {
        let all = errors(900, 100, "role=made peer=10.0.0.9:6379 protocol=redis");
        assert!(all[0].0.starts_with("100 answers of 10.0.0.9:6379, which it asks, say"), "{all:?}");
        assert_eq!(all[0].1, "find out why: `redis-cli -p 6379 info errorstats`");
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
