// SPDX-License-Identifier: Apache-2.0
//! Requests queue inside a program because all connections to somebody whom it asks are taken. Where loops or goroutines serve many
//! requests each, the kernel sees no such queue; but Little's law tells how many requests were in hand and how many questions under
//! way, and looks at sockets how many connections there were to ask over.

mod taken;

use super::super::{Outcome, Statement, evidence};
use super::{AT_ITS_LIMIT, RULE};
use crate::case::Case;
use crate::facts::requests::Requests;
use crate::facts::stacks::Stacks;
use crate::facts::waiting::Waiting;
use crate::phrases::chain::links;
use crate::statistics::share;
use crate::verdict::{Evidence, Explains, Finding, Subject};
use crate::walk::chains::Chain;
use crate::walk::lasting;
use crate::wording::{percent, plural, seconds, sockets_to};
use taken::{Taken, taken};

/// Of their time: nobody counts what is left.
const ALL_THE_TIME: f64 = 0.95;

impl Taken<'_> {
    /// What a finding rests on.
    fn evidence(&self) -> Vec<Evidence> {
        let to_see = sockets_to("-tnp", &self.peer.name);
        let mut all = vec![
            evidence("requests in hand, on average", self.in_hand, "requests", "about as many as questions", ""),
            evidence("questions under way, on average", self.asked, "questions", "fewer than connections", ""),
            evidence("connections to ask over", self.open, "connections", "more than questions", to_see),
            evidence("an answer from there, on average", self.peer.response.mean_ns() / 1e9, "s", "", ""),
        ];
        if self.most() > 0.0 {
            all.insert(2, evidence("at most", self.most(), "questions", "more than on average", ""));
        }
        if self.is_handed_on() {
            let by_chance = "one in four";
            all.insert(
                3,
                evidence("begun when another was answered", self.counted.handed_on * 100.0, "%", by_chance, ""),
            );
        }
        all
    }

    /// Behind what is said of the fullest.
    fn of_others(&self) -> String {
        match self.others {
            0 => String::new(),
            others => format!("; so it is with {} whom it asks", plural(others, "other")),
        }
    }

    fn words(&self) -> String {
        if !self.has_no_connection_free() {
            let questions = plural(self.most() as usize, "question");
            return format!("hardly ever more than {questions} to {} at once", self.peer.name);
        }
        let taken = share(self.asked, self.open);
        let part = if taken >= ALL_THE_TIME { String::new() } else { format!(" for {} of the time", percent(taken)) };
        match self.open.round() as u64 {
            0 | 1 => format!("its one connection to {} is taken{part}", self.peer.name),
            number => format!("all {number} connections to {} are taken{part}", self.peer.name),
        }
    }
}

/// The finding, if requests stand before such a pool.
pub(super) fn check(case: &Case) -> Option<Outcome> {
    let (requests, waiting) = (case.fact::<Requests>().ok()?, case.fact::<Waiting>().ok()?);
    let taken = taken(case, &requests)?;
    let part = share(taken.queued, taken.in_hand);
    let headline = format!("requests queue inside it for {} of their time: {}", percent(part), taken.words());
    let advice = format!(
        "see why an answer from there takes {}: a larger pool helps only if that has room for more at once",
        seconds(taken.peer.response.mean_ns() / 1e9)
    );
    let chain = waiting.chains.iter().find(|chain| chain.links[0].who.peer == taken.peer.name);
    let finding = finding(case, &taken, chain)?;
    Some(Outcome::Found(Box::new(finding), Statement::short(headline, advice)))
}

fn finding(case: &Case, taken: &Taken<'_>, chain: Option<&Chain>) -> Option<Finding> {
    let (stacks, peer) = (case.fact::<Stacks>().ok()?, taken.peer);
    let part = share(taken.queued, taken.in_hand);
    let open = taken.open.round().max(1.0);
    let who = chain.map(|chain| &chain.links[0].who);
    Some(Finding {
        summary: format!(
            "{:.1} requests were in hand on average, and {:.1} questions to {} under way, over {}: the others, {} of their \
             time, stood for {} each until one was free{}",
            taken.in_hand,
            taken.asked,
            peer.name,
            plural(open as usize, "connection"),
            percent(part),
            seconds(taken.each_ns / 1e9),
            taken.of_others()
        ),
        subject: Subject {
            pid: who.and_then(|who| lasting(who.pid)),
            comm: who.map(|who| who.comm.clone()),
            socket: Some(peer.name.clone()),
            ..Subject::default()
        },
        explains: Explains {
            share: part,
            of: "response time of requests".into(),
            seconds: taken.queued * case.seconds(),
        },
        evidence: taken.evidence(),
        chain: chain.map_or_else(Vec::new, |chain| links(chain, &stacks)),
        remedy: format!(
            "The program itself asks {} for no more at once: the size of a pool, a limit of its client library, a semaphore, a lock \
             that is held while it asks. If that has room for more, raise it; {AT_ITS_LIMIT}",
            peer.name
        ),
        check: "Requests in hand are about as many as questions under way, and the response time falls by this part."
            .into(),
        // That nobody was seen to ask for more is a weaker witness than that there is nothing to ask over.
        ..RULE.finding(case, if taken.has_two_witnesses() { 2 } else { 1 })
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::{found, silent};
    use super::super::RULE;

    /// A loop that answers 100 requests in 4 s, each `length` ms after it was read, and asks a database over `open` connections for
    /// `asked` ms of that, one after the other on each.
    fn service(length: u32, asked: u32, open: u32) -> String {
        answered(length, asked, open, 1)
    }

    /// The same, where clients are answered so many ms after the database has.
    fn answered(length: u32, asked: u32, open: u32, late: u32) -> String {
        let mut text = "meta host.arch=x86_64 length_ns=4e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
            process pid=1 listen=[\"tcp 0.0.0.0:80\"]
            thread t_ns=4e9 pid=1 tid=1 comm=loop wall_ns=4e9 cpu_ns=1e8 blocked_ns=39e8
            frame id=1 symbol=net_rx_action module=kernel kind=kernel
            stack id=1 frames=[1]
            burst t_ns=4e9 length_ns=4e9
            exchange_window t_ns=4e9 length_ns=4e9\n"
            .to_string();
        for end in (0..80).map(|nth| 790 + nth * 40) {
            let (began, until) = (end - length, end - late);
            text += &format!(
                "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={began}e6 began_tid=1 read_ns={began}e6 ended_tid=1
                 request t_ns={until}e6 role=made peer=10.0.0.9:5432 pid=1 began_ns={}e6 began_tid=1 read_ns={until}e6 ended_tid=1
                 wakeup t_ns={until}e6 pid=1 tid=1 comm=loop wait_ns=38e6 blocked_ns=38e6 since_ns={}e6 waits=1 syscall=232 family=2 local_port=4000 remote_port=5432 peer=10.0.0.9 context=interrupt waker_stack=1\n",
                until - asked,
                until - 38
            );
        }
        let sum = |ms: u32| format!("sum_ns={}e6 length_ns=[{ms}000000] counts=[100]", 100 * ms);
        let (response, made) = (sum(length), sum(asked));
        text + &format!(
            "exchange role=accepted port=80 stage=response count=100 {response}
             exchange role=accepted port=80 stage=service count=100 {response}
             exchange role=made peer=10.0.0.9:5432 stage=response count=100 {made}
             connection t_ns=4e9 role=accepted port=80 looks=40 open=1600 unanswered=760 late=760 late_ns=4e11
             connection t_ns=4e9 role=made peer=10.0.0.9:5432 looks=40 open={}",
            open * 40
        )
    }

    #[test]
    fn requests_that_stand_before_a_pool_of_the_program_s_own() {
        // 760 ms each are 19 in hand, 78 ms each 1.95 questions.
        let finding = found(&RULE, &service(760, 78, 2));
        assert_eq!(finding.subject.socket.as_deref(), Some("10.0.0.9:5432"));
        assert!(
            finding.summary.contains("19.0 requests were in hand on average, and 1.9 questions"),
            "{}",
            finding.summary
        );
        assert!((finding.explains.share - 0.897).abs() < 0.01, "{:?}", finding.explains);
    }

    #[test]
    fn connections_that_are_free_or_requests_that_ask_at_once() {
        silent(&RULE, &service(760, 78, 4));
        silent(&RULE, &service(84, 78, 2));
        // A connection for each question, and questions of 1 ms: nothing is taken.
        silent(&RULE, &service(760, 1, 0));
    }

    #[test]
    fn a_connection_for_each_question() {
        let more = "connection t_ns=3e9 role=made peer=10.0.0.9:5432 looks=40 open=60";
        silent(&RULE, &format!("{}\n{more}", service(760, 78, 2)));
        found(&RULE, &format!("{}\n{}", service(760, 78, 2), more.replace("open=60", "open=80")));
    }

    /// Three connections, and no looks that tell: single questions do.
    #[test]
    fn a_next_question_that_begins_when_another_is_answered() {
        let busy =
            |asked| service(760, asked, 3).replace("burst t_ns=4e9 length_ns=4e9", "burst t_ns=395e7 length_ns=316e7");
        let finding = found(&RULE, &busy(78));
        assert!(finding.evidence.iter().any(|e| e.fact == "begun when another was answered"), "{:?}", finding.evidence);
        assert!((finding.explains.share - 0.897).abs() < 0.01, "{:?}", finding.explains);
        // As many at once by their rate alone: an answer comes 15 ms before the next question.
        silent(&RULE, &busy(65));
        // A consumer of a queue that always has two questions under way, and answers that have nothing to do with it.
        let beside =
            answered(760, 78, 3, 21).replace("burst t_ns=4e9 length_ns=4e9", "burst t_ns=395e7 length_ns=316e7");
        silent(&RULE, &beside);
    }

    #[test]
    fn a_limit_that_is_no_pool_of_connections() {
        // Six connections, of which never more than two are used.
        let limited = |most: u32| {
            let text =
                service(760, 78, 6).replace("open=240", &format!("open=240 unanswered=76 most_unanswered={most}"));
            text.replace("meta ", "meta target.named=\"--port 80\" ")
        };
        let finding = found(&RULE, &limited(2));
        assert!(finding.summary.contains("1.9 questions to 10.0.0.9:5432 under way"), "{}", finding.summary);
        silent(&RULE, &limited(5));
        silent(&RULE, &limited(0));
    }
}
