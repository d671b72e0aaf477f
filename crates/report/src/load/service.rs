// SPDX-License-Identifier: Apache-2.0
//! What the service did meanwhile.

use crate::section::{Block, Section, Tone};

use super::{Answer, section};

/// The section; none where it was not diagnosed.
pub fn part(answer: &Answer) -> Option<Section> {
    let service = answer.service.as_ref()?;
    let headline = format!("{}: {}", service.verdict, service.headline);
    let mut texts = vec![headline, format!("It used {:.2} CPUs.", service.cpus)];
    if !service.advice.is_empty() {
        texts.insert(1, service.advice.clone());
    }
    let blocks = texts.into_iter().map(|text| Block::Text { text, tone: Tone::Plain }).collect();
    Some(section("service", "The service meanwhile".into(), blocks))
}
