// SPDX-License-Identifier: Apache-2.0
//! What the finding rests on, how to see it without wakewalk, and how to check the fix. Further findings are in
//! [`super::also`].

use diagnose::verdict::{Evidence, Finding, Link};

use crate::numbers;
use crate::section::{Block, Column, Section, Terminal, Tone};

use super::Material;

/// What begins the sentence about what to look at once the fix is in.
pub(crate) const AFTER: &str = "To check the fix";

/// strace stops its target twice a call: a tight loop of calls keeps less than 1 % of its speed.
const STRACE: &str = " (strace slows a target that makes many calls a hundredfold while it runs)";

/// Rows of measured values in the short form; rules put the decisive ones first.
const ROWS: usize = 5;

const CHAIN_TITLE: &str = "From the wait to its cause";

/// Said of names like `sh/*`.
const STAR: &str = "/* stands for the processes of a program that is started anew again and again, added up.";

/// Lines of a chain: the middle of a longer one is left out.
const CHAIN: usize = 8;

/// The finding that the verdict names.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let verdict = material.verdict;
    let finding = verdict.findings.first()?;
    let summary = (finding.summary != verdict.headline).then(|| summary(finding, Tone::Plain));
    let remedy = sentence("Remedy", &finding.remedy).filter(|_| finding.remedy != verdict.advice);
    let short = [summary.clone().into_iter().collect(), in_short(finding), remedy.clone().into_iter().collect()];
    let blocks = summary.into_iter().chain(proof(finding)).chain(remedy).chain(sentence(AFTER, &finding.check));
    Some(Section::new("evidence", "Evidence", blocks.collect(), Terminal::All).kept_as(short.concat()))
}

/// What the short form shows of the measured values, and the chain. Commands to check with are for later.
fn in_short(finding: &Finding) -> Vec<Block> {
    let all = finding.evidence.len();
    let shown = if all > ROWS + 1 { ROWS } else { all };
    let mut blocks: Vec<Block> = evidence(&finding.evidence[..shown]).into_iter().collect();
    let more = format!("and {} more measured, with commands to check them", all - shown);
    blocks.extend((all > shown).then_some(Block::Text { text: more, tone: Tone::Dim }));
    blocks.extend(whole_chain(finding));
    blocks
}

/// Measured values, the chain, and the commands that show the same.
pub(super) fn proof(finding: &Finding) -> Vec<Block> {
    let mut blocks: Vec<Block> = evidence(&finding.evidence).into_iter().chain(whole_chain(finding)).collect();
    blocks.extend(see_yourself(&finding.evidence));
    blocks
}

/// The finding in one paragraph.
pub(super) fn summary(finding: &Finding, tone: Tone) -> Block {
    let explains = &finding.explains;
    let share = numbers::share(explains.share);
    let text = format!(
        "{} ({} confidence, {share} of {}): {}",
        finding.cause, finding.confidence, explains.of, finding.summary
    );
    Block::Text { text, tone }
}

fn evidence(evidence: &[Evidence]) -> Option<Block> {
    let row = |e: &Evidence| vec![e.fact.clone(), numbers::quantity(e.value, &e.unit), e.expected.clone()];
    let columns = vec![Column::left("measured"), Column::right("value"), Column::left("healthy")];
    let rows: Vec<_> = evidence.iter().map(row).collect();
    (!rows.is_empty()).then(|| Block::Table { title: String::new(), columns, rows })
}

/// The chain, and what the star in its names means.
fn whole_chain(finding: &Finding) -> impl Iterator<Item = Block> {
    let starts_again = finding.chain.iter().any(|link| link.who.ends_with("/*"));
    let star = starts_again.then(|| Block::Text { text: STAR.to_owned(), tone: Tone::Dim });
    chain(CHAIN_TITLE, &finding.chain).into_iter().chain(star)
}

/// A chain as a table: waits, and what the last one ends at.
pub(super) fn chain(title: &str, chain: &[Link]) -> Option<Block> {
    let row = |link: &Link| {
        // What ended the last wait is nobody's code: the code is where it went on.
        let then = if link.who.is_empty() { "then " } else { "" };
        let place = link.stack.first().map(|place| format!("{then}{place}")).unwrap_or_default();
        vec![link.who.clone(), numbers::seconds(link.seconds), link.waits_on.clone(), place]
    };
    let columns =
        vec![Column::left("who"), Column::right("time"), Column::left("waits on or does"), Column::left("where")];
    let mut rows: Vec<_> = chain.iter().map(row).collect();
    if rows.len() > CHAIN {
        let left_out = rows.len() + 1 - CHAIN;
        let dots = vec![format!("… {left_out} more"), String::new(), String::new(), String::new()];
        rows.splice(CHAIN / 2..CHAIN / 2 + left_out, [dots]);
    }
    (!rows.is_empty()).then(|| Block::Table { title: title.to_owned(), columns, rows })
}

/// The commands that show the same, each once.
fn see_yourself(evidence: &[Evidence]) -> Vec<Block> {
    let mut commands: Vec<&str> = Vec::new();
    for command in evidence.iter().map(|e| e.see_yourself.as_str()) {
        if !command.is_empty() && !commands.contains(&command) {
            commands.push(command);
        }
    }
    if commands.is_empty() {
        return Vec::new();
    }
    // A command that carries its own warning needs no second one.
    let unwarned = |command: &&&str| !command.contains('#') && command.split(' ').any(|word| word == "strace");
    let strace = commands.iter().any(|command| unwarned(&command));
    let warning = if strace { STRACE } else { "" };
    let heading = Block::Text { text: format!("See it yourself{warning}:"), tone: Tone::Dim };
    std::iter::once(heading).chain(commands.into_iter().map(|c| Block::Command { text: c.to_owned() })).collect()
}

/// A labelled sentence, if there is one.
pub(super) fn sentence(label: &str, text: &str) -> Option<Block> {
    (!text.is_empty()).then(|| Block::Text { text: format!("{label}: {text}"), tone: Tone::Plain })
}
