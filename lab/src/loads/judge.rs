// SPDX-License-Identifier: Apache-2.0
//! What `wakewalk load` said, held against the truth.

use serde_json::Value;

/// How far from the truth a limit may be told. Sweeps come within a twentieth; the rest is that a service's own time per request
/// is not exactly what it was written for.
const NEAR: f64 = 0.1;
/// How far a percentile. They are told to one in a hundred; the rest is what timers and loopback add to a short answer.
const CLOSE: f64 = 0.02;

/// What has to be said of a load.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// The verdict; empty = a sweep has none.
    pub verdict: &'static str,
    /// Codes that have to be among its reasons, or a sweep's findings.
    pub has: &'static [&'static str],
    /// Codes that must not be.
    pub has_not: &'static [&'static str],
    /// Where a sweep's limit lies, requests a second.
    pub limit: Option<f64>,
    /// Percentiles from when requests were due, s.
    pub percentiles: Vec<(&'static str, f64)>,
    /// What the service is accused of at one of the loads, or meanwhile.
    pub service: Option<&'static str>,
}

impl Truth {
    /// What is wrong with what was said; none = it is right.
    pub fn objection(&self, said: &Value) -> Option<String> {
        let codes = codes(said);
        if !self.verdict.is_empty() && said["verdict"] != self.verdict {
            return Some(format!(
                "expected {}, the verdict is {}: {}",
                self.verdict,
                said["verdict"],
                codes.join(", ")
            ));
        }
        if let Some(code) = self.has.iter().find(|code| !codes.contains(code)) {
            return Some(format!("{code} is missing among {}", codes.join(", ")));
        }
        if let Some(code) = self.has_not.iter().find(|code| codes.contains(code)) {
            return Some(format!("{code} is not true: {}", sentence(said, code)));
        }
        if let Some(service) = self.service.filter(|service| !accused(said).contains(service)) {
            return Some(format!("the service is {}, expected {service}", accused(said).join(", ")));
        }
        let limit = self.limit.and_then(|limit| far_from(limit, said));
        limit.or_else(|| self.percentiles.iter().find_map(|(name, truth)| other(name, *truth, said)))
    }
}

/// Codes of reasons and findings.
pub fn codes(said: &Value) -> Vec<&str> {
    let lists = ["reasons", "findings"].into_iter().filter_map(|list| said[list].as_array()).flatten();
    lists.filter_map(|reason| reason["code"].as_str()).collect()
}

/// What the service was diagnosed.
fn accused(said: &Value) -> Vec<&str> {
    let steps = said["steps"].as_array().into_iter().flatten();
    steps.chain([said]).filter_map(|step| step["service"]["verdict"].as_str()).collect()
}

fn far_from(limit: f64, said: &Value) -> Option<String> {
    let side = |name: &str| said["knee"][name].as_f64();
    let (Some(sustained), Some(not)) = (side("sustained"), side("not_sustained")) else {
        return Some(format!("no limit was found, it is {limit:.0}/s: {}", said["findings"]));
    };
    let is_near = sustained <= limit * (1.0 + NEAR) && not >= limit * (1.0 - NEAR);
    (!is_near).then(|| format!("the limit is told to lie from {sustained:.0} to {not:.0}/s, it is {limit:.0}/s"))
}

fn other(name: &str, truth: f64, said: &Value) -> Option<String> {
    let told = said["corrected"][name].as_f64().unwrap_or(0.0);
    ((told - truth).abs() > CLOSE * truth).then(|| format!("the {name} is told to be {told:.4} s, it is {truth:.4} s"))
}

/// What is said with a code.
fn sentence(said: &Value, code: &str) -> String {
    let all = ["reasons", "findings"].iter().filter_map(|list| said[*list].as_array()).flatten();
    let with = all.filter(|reason| reason["code"] == code);
    with.filter_map(|reason| reason["sentence"].as_str()).next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_said_or_not_true_is_an_objection() {
        let truth = Truth { verdict: "misleading", has: &["errors"], has_not: &["late"], ..Truth::default() };
        let said = |verdict: &str, code: &str| json!({"verdict": verdict, "reasons": [{"code": "errors"}, {"code": code, "sentence": "by 1 ms"}]});
        assert_eq!(truth.objection(&said("misleading", "x")), None);
        assert!(truth.objection(&said("valid", "x")).unwrap().contains("expected misleading"));
        assert_eq!(truth.objection(&said("misleading", "late")).unwrap(), "late is not true: by 1 ms");
        assert!(truth.objection(&json!({"verdict": "misleading"})).unwrap().contains("errors is missing"));
    }

    #[test]
    fn limits_percentiles_and_the_service() {
        let truth = Truth { limit: Some(200.0), service: Some("busy-poll"), ..Truth::default() };
        let swept = |low: f64, high: f64| json!({"knee": {"sustained": low, "not_sustained": high}, "steps": [{"service": {"verdict": "busy-poll"}}]});
        assert_eq!(truth.objection(&swept(195.0, 205.0)), None);
        assert!(truth.objection(&swept(240.0, 250.0)).unwrap().contains("it is 200/s"));
        assert!(truth.objection(&json!({})).unwrap().contains("expected busy-poll"));
        let truth = Truth { percentiles: vec![("p50", 0.02), ("p99", 0.92)], ..Truth::default() };
        assert_eq!(truth.objection(&json!({"corrected": {"p50": 0.0202, "p99": 0.93}})), None);
        assert!(truth.objection(&json!({"corrected": {"p50": 0.02, "p99": 0.01}})).is_some());
    }
}
