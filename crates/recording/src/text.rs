// SPDX-License-Identifier: Apache-2.0
//! A recording written as text: how rule tests state the evidence that they are about.
//!
//! One row a line: `table column=value column="two words" column=[1,2]`; columns that are not
//! named keep their default. `meta` lines set `meta.json` by dotted path. `#` starts a comment.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use crate::{Meta, Recording, tables};

/// Parses a recording from text.
///
/// # Errors
/// The line that cannot be read.
pub fn parse(text: &str) -> Result<Recording> {
    let mut recording = Recording::default();
    let mut meta = serde_json::to_value(Meta { length_ns: 10_000_000_000, sealed: true, ..Meta::default() })?;
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let pairs = pairs(rest).with_context(|| format!("failed to parse line `{line}`"))?;
        if name == "meta" {
            for (path, value) in pairs {
                let pointer = format!("/{}", path.replace('.', "/"));
                *meta.pointer_mut(&pointer).with_context(|| format!("no meta field `{path}`"))? = value;
            }
        } else if !tables::push_json(name, Value::Object(pairs), &mut recording.tables)
            .with_context(|| format!("failed to read line `{line}`"))?
        {
            bail!("no table is called `{name}` (line `{line}`)");
        }
    }
    recording.meta = serde_json::from_value(meta)?;
    Ok(recording)
}

fn pairs(mut rest: &str) -> Result<Map<String, Value>> {
    let mut out = Map::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok(out);
        }
        let (key, after) = rest.split_once('=').context("expected column=value")?;
        let mut stream = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        let (value, used) = match stream.next() {
            Some(Ok(value)) => (value, stream.byte_offset()),
            _ => {
                let word = after.split(' ').next().unwrap_or_default();
                (Value::String(word.to_string()), word.len())
            }
        };
        out.insert(key.to_string(), number(value));
        rest = &after[used..];
    }
}

/// `4e9` reads as a float, and so does what a test computed with floats; a whole one is meant as a count.
fn number(value: Value) -> Value {
    match value.as_f64() {
        Some(f) if value.is_f64() && f.abs() < 9e15 && (f - f.round()).abs() <= f.abs() * 1e-9 => {
            Value::from(f.round() as i64)
        }
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use crate::tables::{Frame, Thread};

    #[test]
    fn rows_and_meta() {
        let r = super::parse(
            "meta target.comm=nginx length_ns=2e9\n# note\nthread pid=1 tid=2 cpu_ns=4e9 comm=\"a b\"\nframe id=1 symbol=main",
        )
        .unwrap();
        assert_eq!((r.meta.target.comm.as_str(), r.meta.length_ns), ("nginx", 2_000_000_000));
        let t: &Thread = &r.rows::<Thread>()[0];
        assert_eq!((t.tid, t.cpu_ns, t.comm.as_str()), (2, 4_000_000_000, "a b"));
        assert_eq!(r.rows::<Frame>()[0].symbol, "main");
    }

    #[test]
    fn mistakes_are_named() {
        let error = |t: &str| format!("{:#}", super::parse(t).err().unwrap());
        assert!(error("nonsense a=1").contains("no table is called `nonsense`"));
        assert!(error("thread pid=x").contains("thread pid=x"));
    }
}
