// SPDX-License-Identifier: Apache-2.0
//! What else was found: causes that explain less than the first one, or part of the same time.

use crate::section::{Section, Terminal, Tone};

use super::Material;
use super::evidence::{AFTER, proof, sentence, summary};

/// The findings after the first. A terminal shows what they are; the page also on what they rest.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let others = material.verdict.findings.get(1..).filter(|others| !others.is_empty())?;
    let mut blocks: Vec<_> = others.iter().map(|finding| summary(finding, Tone::Warn)).collect();
    let terminal = Terminal::First(blocks.len());
    for finding in others {
        blocks.extend(proof(finding));
        blocks.extend(sentence("Remedy", &finding.remedy));
        blocks.extend(sentence(AFTER, &finding.check));
    }
    Some(Section::new("also", "Also found", blocks, terminal).kept())
}
