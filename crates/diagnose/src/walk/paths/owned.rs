// SPDX-License-Identifier: Apache-2.0
//! For which request the target asked somebody, told by times alone: the answer to its question came just before it answered, or
//! before it asked on.
//!
//! Threads tell it where one of them reads the answer and answers at once. They do not where a task of the runtime goes on in
//! another turn of the loop, or in another thread: when a connection was opened for the question, or closed after it.

use std::collections::BTreeMap;

use recording::tables::Request;

/// How long after the answer to a question its own may follow, of the time that the question took: of what has nothing to do
/// with it, one in twenty does by chance.
const AFTER: u64 = 20;

/// A request: the process, the thread that answered it, when.
type Key = (u32, u32, u64);

/// A request that wants an explanation for what was before a time.
type Anchors<'r> = BTreeMap<(u32, u64, usize), &'r Request>;

/// Questions by the request that they were asked for.
#[derive(Default)]
pub struct Owned<'r> {
    by: BTreeMap<Key, Vec<&'r Request>>,
}

fn key(request: &Request) -> Key {
    (request.pid, request.ended_tid, request.t_ns)
}

impl<'r> Owned<'r> {
    /// No question has two requests, and a request has one for each of its moments. Those that were answered at once come first:
    /// what begins when the answer to another's question has come, stood behind that one.
    pub fn new(asked: &[&'r Request], made: &[&'r Request]) -> Self {
        let mut owned = Self::default();
        let mut anchors: Anchors<'r> =
            asked.iter().enumerate().map(|(at, request)| ((request.pid, request.t_ns, at), *request)).collect();
        let mut last_first = made.to_vec();
        last_first.sort_by_key(|question| std::cmp::Reverse(question.read_ns));
        let mut asked_on = Anchors::new();
        last_first.retain(|question| {
            let Some((at, request)) = take(&mut anchors, question) else { return true };
            asked_on.insert((request.pid, question.began_ns, at), request);
            owned.add(request, question);
            false
        });
        for question in last_first {
            let Some((at, request)) = take(&mut asked_on, question) else { continue };
            asked_on.insert((request.pid, question.began_ns, at), request);
            owned.add(request, question);
        }
        owned
    }

    fn add(&mut self, request: &'r Request, question: &'r Request) {
        self.by.entry(key(request)).or_default().push(question);
    }

    /// The last question of a request of which the answer was read by some time, if it was asked after another one.
    pub fn last(&self, request: &Request, (from, until): (f64, f64)) -> Option<&'r Request> {
        let of_request = self.by.get(&key(request))?;
        let within = |q: &&&Request| q.read_ns as f64 <= until && q.began_ns as f64 >= from && q.read_ns as f64 > from;
        of_request.iter().filter(within).max_by_key(|question| question.read_ns).copied()
    }
}

/// The request that goes on first after the answer to a question, soon enough, and had come before that was asked.
fn take<'r>(anchors: &mut Anchors<'r>, question: &Request) -> Option<(usize, &'r Request)> {
    let (pid, read) = (question.pid, question.read_ns);
    let until = read.saturating_add(read.saturating_sub(question.began_ns) / AFTER);
    let mut soon = anchors.range((pid, read, 0)..=(pid, until, usize::MAX));
    let (at, request) = soon.find(|(_, request)| request.read_ns <= question.began_ns).map(|(at, r)| (*at, *r))?;
    anchors.remove(&at);
    Some((at.2, request))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(began_ms: u64, t_ms: u64) -> Request {
        let (began_ns, t_ns) = (began_ms * 1_000_000, t_ms * 1_000_000);
        Request { pid: 1, began_ns, read_ns: began_ns, t_ns, ..Request::default() }
    }

    fn question(began_ms: u64, read_ms: u64) -> Request {
        Request { read_ns: read_ms * 1_000_000, ..request(began_ms, read_ms) }
    }

    fn owned<'r>(asked: &[&'r Request], made: &[&'r Request]) -> Vec<Vec<(u64, u64)>> {
        let owned = Owned::new(asked, made);
        let of = |request: &&Request| {
            let questions = owned.by.get(&key(request)).map_or(&[][..], |questions| questions);
            questions.iter().map(|q| (q.began_ns / 1_000_000, q.read_ns / 1_000_000)).collect()
        };
        asked.iter().map(of).collect()
    }

    #[test]
    fn the_answer_follows_at_once() {
        let (slow, quick, poll) = (request(100, 202), request(150, 160), request(0, 900));
        let (its, others) = (question(101, 200), question(10, 199));
        assert_eq!(owned(&[&slow, &quick, &poll], &[&its]), [vec![(101, 200)], vec![], vec![]]);
        assert_eq!(owned(&[&slow, &quick, &poll], &[&others]), [vec![], vec![], vec![]], "it was asked before");
    }

    #[test]
    fn several_in_one_turn_have_one_each() {
        let (a, b) = (request(100, 204), request(101, 205));
        let (first, second) = (question(102, 202), question(103, 203));
        assert_eq!(owned(&[&a, &b], &[&first, &second]), [vec![(103, 203)], vec![(102, 202)]]);
    }

    #[test]
    fn one_after_the_other_and_what_stood_behind_them() {
        let (a, b) = (request(100, 301), request(110, 402));
        let (first, second, behind) = (question(101, 199), question(200, 300), question(302, 400));
        let all = owned(&[&a, &b], &[&first, &second, &behind]);
        assert_eq!(all, [vec![(200, 300), (101, 199)], vec![(302, 400)]]);
    }
}
