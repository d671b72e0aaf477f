// SPDX-License-Identifier: Apache-2.0
//! Single requests, step by step: the slowest, and a few usual ones beside them.

use recording::tables::Request;

use super::back::Back;
use super::tree::{Book, Part, Tree};
use crate::walk::{Walk, chains};

/// Slow ones at each port.
const SLOWEST: usize = 5;

/// Usual ones at each port: those in the middle.
const USUAL: usize = 3;

/// One request from its arrival to the answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exemplar {
    /// It is one of the usual ones.
    pub is_usual: bool,
    /// Address and port of the client.
    pub peer: String,
    /// When its first byte arrived, ns after the capture's start.
    pub began_ns: f64,
    /// When it was read, ns after that.
    pub read_ns: f64,
    /// Thread that read it.
    pub began_tid: u32,
    /// When the first write of the answer began, ns after its arrival: the response time.
    pub answered_ns: f64,
    /// Thread that wrote that.
    pub ended_tid: u32,
    /// What it waited for, in the order of time; their parts add up to the response time.
    pub steps: Vec<Step>,
}

/// What one thread did with it, or instead of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Thread.
    pub tid: u32,
    /// When it began, ns after the arrival of the request.
    pub from_ns: f64,
    /// When it ended. Of a thread that was awake, its waits in between are steps of their own.
    pub until_ns: f64,
    /// What it was, most first.
    pub parts: Vec<Part>,
}

impl Step {
    /// Time in it, ns.
    pub fn ns(&self) -> f64 {
        self.parts.iter().map(|part| part.ns).sum()
    }
}

/// A few of the requests at a port, which come in the order of their lengths; the slowest first.
pub fn of(walk: &Walk, back: &mut Back<'_, '_>, requests: &[&Request]) -> Vec<Exemplar> {
    let mut one = |request: &Request, is_usual: bool| {
        let mut steps = Steps::default();
        back.walk(request, &mut steps);
        let began = request.began_ns as f64;
        Exemplar {
            is_usual,
            peer: request.peer.clone(),
            began_ns: began,
            read_ns: (request.read_ns.min(request.t_ns) as f64 - began).max(0.0),
            began_tid: request.began_tid,
            answered_ns: (request.t_ns as f64 - began).max(0.0),
            ended_tid: request.ended_tid,
            steps: steps.told(walk, began),
        }
    };
    let (usual, slow) = few(requests.len());
    let slow: Vec<Exemplar> = slow.rev().map(|at| one(requests[at], false)).collect();
    slow.into_iter().chain(usual.map(|at| one(requests[at], true))).collect()
}

/// Which of so many, by length: those in the middle, and the last ones.
fn few(number: usize) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
    let slow = number.saturating_sub(SLOWEST).max(number / 2)..number;
    let first = (number / 2).saturating_sub(USUAL.div_ceil(2)).min(slow.start);
    (first..(first + USUAL).min(slow.start), slow)
}

/// Books each span by itself.
#[derive(Default)]
struct Steps(Vec<((u32, f64, f64), Tree)>);

impl Book for Steps {
    fn begin(&mut self, _ns: f64) {}

    fn at(&mut self, tid: u32, (from, until): (f64, f64)) -> &mut Tree {
        let span = (tid, from, until);
        // What a thread was at while it was awake comes in several pieces.
        if self.0.last().is_none_or(|(last, _)| *last != span) {
            self.0.push((span, Tree::default()));
        }
        let last = self.0.len() - 1;
        &mut self.0[last].1
    }
}

impl Steps {
    fn told(self, walk: &Walk, began: f64) -> Vec<Step> {
        let step = |((tid, from, until), tree): ((u32, f64, f64), Tree)| {
            let parts = tree.group(|nodes| chains::of_nodes(walk, nodes)).parts;
            Step { tid, from_ns: from - began, until_ns: until - began, parts }
        };
        let mut steps: Vec<Step> = self.0.into_iter().map(step).filter(|step| step.ns() > 0.0).collect();
        // Of those that begin together the longer one is around the other.
        steps.sort_by(|a, b| a.from_ns.total_cmp(&b.from_ns).then(b.until_ns.total_cmp(&a.until_ns)));
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::few;

    #[test]
    fn some_of_the_middle_and_the_last_ones() {
        assert_eq!((few(100), few(8), few(2)), ((48..51, 95..100), (2..4, 4..8), (0..1, 1..2)));
        assert_eq!((few(1), few(0)), ((0..0, 0..1), (0..0, 0..0)));
    }
}
