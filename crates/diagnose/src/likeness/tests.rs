// SPDX-License-Identifier: Apache-2.0
//! Loads beside production.

use recording::Recording;
use recording::text::parse;

use super::*;

/// Ten seconds of so many requests in each, of which some begin a connection, over so many connections.
fn asked(a_second: u64, first: u64, open: u64, rtt: f64, labels: &[(&str, u64)]) -> Recording {
    let mut text = String::from("meta length_ns=10e9 target.listen=[\"tcp 0.0.0.0:80\"]\n");
    for second in 1..=10 {
        text += &format!(
            "exchange_window t_ns={second}e9 length_ns=1e9
             exchange t_ns={second}e9 role=accepted port=80 stage=response began={a_second} count={a_second} sum_ns={sum} length_ns=[1000000] counts=[{a_second}]
             exchange t_ns={second}e9 role=accepted port=80 stage=first_read count={first} sum_ns=1 length_ns=[1] counts=[{first}]
             connection t_ns={second}e9 role=accepted port=80 looks=10 open={all} on_its_way=10 srtt_ns={rtt}\n",
            sum = a_second * 1_000_000,
            all = 10 * open,
            rtt = rtt * 1e10,
        );
    }
    for (label, count) in labels {
        text += &format!(
            "label t_ns=1e9 role=accepted port=80 protocol=http label=\"{label}\" outcome=ok seen={count} count={count} sum_ns=1 length_ns=[1] counts=[{count}]\n"
        );
    }
    parse(&text).unwrap()
}

fn compared(production: &Recording, load: &Recording) -> Likeness {
    likeness(&Asked::of(&Case::new(production)).unwrap(), &Case::new(load))
}

fn unlike(production: &Recording, load: &Recording) -> Vec<String> {
    compared(production, load).unlike().map(|it| it.id.clone()).collect()
}

#[test]
fn a_load_like_production() {
    let production = asked(200, 10, 40, 0.02, &[("GET /cart", 300), ("GET /", 700)]);
    let load = asked(220, 4, 50, 0.015, &[("GET /cart", 100), ("GET /", 400)]);
    let both = compared(&production, &load);
    assert_eq!(both.unlike().count(), 0, "{both:?}");
    assert_eq!(both.traits.len(), 9);
    assert!(both.not_compared.is_empty(), "{both:?}");
}

#[test]
fn one_client_that_asks_one_thing_over_new_connections() {
    let production = asked(200, 10, 400, 0.02, &[("GET /cart", 300), ("GET /", 700)]);
    let load = asked(2000, 2000, 8, 0.000_05, &[("GET /cart", 500)]);
    let all = ["rate", "connections", "first", "at-once", "round-trip", "asked", "asked-time"];
    assert_eq!(unlike(&production, &load), all);
}

#[test]
fn few_connections_more_and_a_near_client_are_nothing() {
    let production = asked(200, 10, 2, 0.0004, &[]);
    let load = asked(200, 10, 6, 0.00005, &[]);
    let both = compared(&production, &load);
    assert_eq!(both.unlike().count(), 0, "{both:?}");
    assert_eq!(both.not_compared.len(), 1, "labels: {both:?}");
}

#[test]
fn what_does_not_tell_how_it_was_asked_is_said_so() {
    let nothing = parse("meta length_ns=10e9\n").unwrap();
    assert!(Asked::of(&Case::new(&nothing)).is_err());
    let both = compared(&asked(200, 10, 2, 0.1, &[]), &nothing);
    assert!(both.traits.is_empty() && both.not_compared[0].starts_with("all: no exchange"), "{both:?}");
}

/// Where requests are followed for a part of the time, fewer are seen of as many.
#[test]
fn what_is_followed_for_a_part_is_no_burst() {
    let load = |part: bool| {
        let mut text = "meta length_ns=10e9 target.listen=[\"tcp 0.0.0.0:80\"]\n".to_string();
        for second in 1..=10 {
            let (length, began) = if part && second % 2 == 0 { ("5e8", 100) } else { ("1e9", 200) };
            text += &format!(
                "exchange_window t_ns={second}e9 length_ns={length}
                 exchange t_ns={second}e9 role=accepted port=80 stage=response began={began} count={began} sum_ns=1 length_ns=[1000000] counts=[{began}]\n"
            );
        }
        Asked::of(&Case::new(&parse(&text).unwrap())).unwrap().burst
    };
    assert_eq!((load(false), load(true)), (Some(1.0), Some(1.0)));
}
