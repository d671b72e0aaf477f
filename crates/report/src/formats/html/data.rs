// SPDX-License-Identifier: Apache-2.0
//! What the script draws from: the answer and the sections, as JSON that cannot end its element.
//!
//! Flame graphs repeat few names in many nodes. They are packed, or a page would be mostly names:
//! `strings` holds each once, a node is `[name, kind, module, value, children]` with indices into it; in a graph
//! of differences the values before and after follow.

use std::collections::HashMap;

use anyhow::Context;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::printable;
use crate::section::{Block, FlameNode, Section};

/// The data of a page: the answer under its name, and the sections.
pub fn json(name: &str, answer: &impl Serialize, sections: &[Section]) -> anyhow::Result<String> {
    let sections: Vec<Value> =
        sections.iter().map(section).collect::<Result<_, _>>().context("failed to write sections")?;
    let mut data = Map::new();
    data.insert(name.to_owned(), serde_json::to_value(answer).with_context(|| format!("failed to write the {name}"))?);
    data.insert("sections".to_owned(), Value::Array(sections));
    Ok(printable::script_json(&Value::Object(data).to_string()))
}

fn section(section: &Section) -> Result<Value, serde_json::Error> {
    let blocks: Vec<Value> = section.blocks.iter().map(block).collect::<Result<_, _>>()?;
    Ok(json!({ "id": section.id, "title": section.title, "blocks": blocks }))
}

fn block(block: &Block) -> Result<Value, serde_json::Error> {
    let (title, unit, legend, root) = match block {
        Block::Flame { title, unit, legend, root } => (title, unit, legend, root),
        // All of it is in the page; the script draws none.
        Block::Timeline(timeline) => return Ok(json!({ "kind": "timeline", "title": timeline.title })),
        Block::Plot(plot) => return Ok(json!({ "kind": "plot", "title": plot.title })),
        _ => return serde_json::to_value(block),
    };
    let mut strings = Strings::default();
    let root = strings.pack(root);
    Ok(json!({ "kind": "flame", "title": title, "unit": unit, "legend": legend, "strings": strings.all, "root": root }))
}

/// Strings in the order of their first use.
#[derive(Default)]
struct Strings<'n> {
    all: Vec<&'n str>,
    index: HashMap<&'n str, usize>,
}

impl<'n> Strings<'n> {
    fn pack(&mut self, node: &'n FlameNode) -> Value {
        let [name, kind, module] = [&node.name, &node.kind, &node.module].map(|text| self.index(text));
        let children: Vec<Value> = node.children.iter().map(|child| self.pack(child)).collect();
        match node.sides {
            None => json!([name, kind, module, node.value, children]),
            Some([before, after]) => json!([name, kind, module, node.value, children, before, after]),
        }
    }

    fn index(&mut self, text: &'n str) -> usize {
        *self.index.entry(text).or_insert_with(|| {
            self.all.push(text);
            self.all.len() - 1
        })
    }
}
