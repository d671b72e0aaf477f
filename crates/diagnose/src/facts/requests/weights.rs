// SPDX-License-Identifier: Apache-2.0
//! What each stretch in which exchanges were followed stands for. On a busy host they are followed for a part of the time, and for the
//! smaller a part the more there are: without this, the quiet time would count for more than the busy one.

use std::collections::BTreeMap;

use recording::tables::ExchangeWindow;

use crate::case::Case;
use crate::statistics::ratio;

/// Stretches that stand for so many times what others do: less makes no difference.
const UNLIKE: f64 = 1.5;

/// By the end of each stretch, how much more or less than others it stands for; all of them together stand for what they are. Empty =
/// they are alike.
pub(crate) fn of(case: &Case) -> BTreeMap<u64, f64> {
    let mut windows: Vec<&ExchangeWindow> = case.recording.rows::<ExchangeWindow>().iter().collect();
    windows.retain(|window| window.length_ns > 0);
    windows.sort_by_key(|window| window.t_ns);
    let begins = |window: &ExchangeWindow| window.t_ns.saturating_sub(window.length_ns) as f64;
    let next = windows.iter().skip(1).map(|window| begins(window)).chain([case.length_ns()]);
    let stands_for = |(window, next): (&&ExchangeWindow, f64)| {
        let length_ns = window.length_ns as f64;
        (window.t_ns, length_ns, (next - begins(window)).max(length_ns))
    };
    let all: Vec<(u64, f64, f64)> = windows.iter().zip(next).map(stands_for).collect();
    let each = || all.iter().map(|(_, length_ns, whole_ns)| whole_ns / length_ns);
    if each().fold(0.0, f64::max) < UNLIKE * each().fold(f64::INFINITY, f64::min) {
        return BTreeMap::new();
    }
    let (followed_ns, whole_ns) = all.iter().fold((0.0, 0.0), |sum, (_, a, b)| (sum.0 + a, sum.1 + b));
    let part = ratio(followed_ns, whole_ns);
    all.iter().map(|(t_ns, length_ns, whole_ns)| (*t_ns, whole_ns / length_ns * part)).collect()
}

#[cfg(test)]
mod tests {
    use recording::text::parse;

    use crate::case::Case;
    use crate::facts::requests::Requests;

    /// Five quiet seconds, all of them followed, and five busy ones, of which the first was.
    #[test]
    fn a_busy_time_of_which_a_part_was_followed_counts_in_full() {
        let mut text = "meta length_ns=10e9\n".to_string();
        for second in 1..=6 {
            let (count, ns): (u64, u64) = if second < 6 { (100, 1_000_000) } else { (500, 50_000_000) };
            text += &format!(
                "exchange_window t_ns={second}e9 length_ns=1e9
                 exchange t_ns={second}e9 role=accepted port=80 stage=response count={count} began={count} sum_ns={} length_ns=[{ns}] counts=[{count}]\n",
                count * ns
            );
        }
        let requests = Case::new(&parse(&text).unwrap()).fact::<Requests>().unwrap();
        let response = &requests.main().unwrap().response;
        assert_eq!((response.count * requests.scale()).round(), 3000.0, "500 of the quiet time, 2500 of the busy one");
        let slow = response.count_from(10e6) / response.count;
        assert!((slow - 2500.0 / 3000.0).abs() < 1e-9, "{slow}");
        assert_eq!(response.quantile_ns(0.5), 50e6);
    }
}
