// SPDX-License-Identifier: Apache-2.0
//! The short form: what carries the verdict, in about fifty lines. Tables of all threads, functions, calls and
//! resources are for who has the time.

use crate::section::{Brief, Section, Terminal};

/// The sections of the short form, and the titles of those that are left out.
pub fn brief(sections: &[Section]) -> (Vec<Section>, Vec<&str>) {
    let rest = sections.iter().filter(|s| matches!(s.brief, Brief::Title));
    let rest = rest.filter(|s| s.terminal != Terminal::Nothing && !s.blocks.is_empty());
    (sections.iter().filter_map(shorter).collect(), rest.map(|s| s.title.as_str()).collect())
}

fn shorter(section: &Section) -> Option<Section> {
    let blocks = match &section.brief {
        Brief::Title => return None,
        Brief::Same => return Some(section.clone()),
        Brief::Blocks(blocks) => blocks.clone(),
    };
    Some(Section { blocks, terminal: Terminal::All, ..section.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::Block;

    #[test]
    fn what_carries_the_verdict_stays_and_the_rest_is_named() {
        let items = |n| vec![Block::List { items: vec![] }; n];
        let section = |id: &'static str, terminal| Section::new(id, id, items(3), terminal);
        let all = [
            section("threads", Terminal::First(2)),
            section("gaps", Terminal::First(2)).kept(),
            section("evidence", Terminal::All).kept_as(items(1)),
            section("page only", Terminal::Nothing),
        ];
        let (kept, rest) = brief(&all);
        let shown: Vec<usize> = kept.iter().map(|s| s.terminal.count(s.blocks.len())).collect();
        assert_eq!((rest, shown), (vec!["threads"], vec![2, 1]));
    }
}
