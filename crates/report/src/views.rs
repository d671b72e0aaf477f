//! From a verdict to sections: what is worth showing and in which words, never how it looks.
//!
//! A view is one file with one function and one line in [`VIEWS`]. The order of that list is the order of
//! the report: an engineer reads from the top and stops when it is enough. Views of facts belong between the
//! evidence and what was ruled out.

pub mod head;

mod capture;
mod coverage;
mod evidence;
mod gaps;
mod ledger;
pub(crate) mod resources;
mod ruled_out;

use diagnose::Case;
use diagnose::verdict::Verdict;

use crate::section::Section;

/// What views are made from: the answer, and the case that it answers, for the facts.
#[derive(Clone, Copy)]
pub struct Material<'a> {
    /// The verdict.
    pub verdict: &'a Verdict,
    /// The recording and its facts; a fact is computed when the first view asks for it.
    pub case: &'a Case<'a>,
}

impl<'a> Material<'a> {
    /// Material for the views of one report.
    #[must_use]
    pub fn new(verdict: &'a Verdict, case: &'a Case<'a>) -> Self {
        Self { verdict, case }
    }
}

/// A view: a section, or none where there is nothing to say.
pub type View = fn(&Material<'_>) -> Option<Section>;

/// All views, in the order of the report.
pub const VIEWS: &[View] =
    &[ledger::view, evidence::view, resources::view, ruled_out::view, gaps::view, coverage::view, capture::view];

/// The whole report.
#[must_use]
pub fn sections(material: &Material<'_>) -> Vec<Section> {
    VIEWS.iter().filter_map(|view| view(material)).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_view_is_registered() {
        let list = include_str!("views.rs");
        for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/views")).unwrap() {
            let path = entry.unwrap().path();
            let source = std::fs::read_to_string(&path).unwrap();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let registered = list.contains(&format!(" {name}::view")) || list.contains(&format!("[{name}::view"));
            assert!(registered || !source.contains("pub fn view("), "{name} is not in VIEWS");
        }
    }
}
