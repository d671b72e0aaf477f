// SPDX-License-Identifier: Apache-2.0
//! `SCHEMA.md`, made from the doc comments of the row types.

use std::fmt::Write as _;

use serde_json::Value;

use crate::{SCHEMA, tables};

/// The documentation of the layout on disk, as Markdown.
pub fn markdown() -> String {
    let mut out = format!(
        "# Layout of a recording, version {SCHEMA}\n\n\
         Generated from `crates/recording/src/tables/` by `make schema`; do not edit.\n\n\
         A recording is a folder: `meta.json` and one file per table, `NAME.parquet` once sealed, \
         `NAME.arrows` (Arrow IPC stream) while it is written or after a kill. Sealing notes each table's size \
         and CRC-32 in `meta.json` (`files`), and a table that does not have them is refused. Times are ns of \
         CLOCK_MONOTONIC, counted from the capture's start.\n"
    );
    for (name, schema) in tables::all() {
        let schema = schema.to_value();
        let _ = write!(out, "\n## {name}\n\n{}\n\n", text(&schema));
        out.push_str("| column | type | meaning |\n|---|---|---|\n");
        for (column, property) in schema["properties"].as_object().into_iter().flatten() {
            let _ = writeln!(out, "| `{column}` | {} | {} |", type_of(property), text(property));
        }
    }
    out
}

fn text(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|")
}

fn type_of(property: &Value) -> String {
    if let Some(format) = property["format"].as_str() {
        return format.replace("uint", "u").replace("int", "i").replace("double", "f64");
    }
    match property["type"].as_str() {
        Some("array") => format!("list of {}", type_of(&property["items"])),
        Some(name) => name.to_string(),
        None => "optional".to_string(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn schema_md_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../SCHEMA.md");
        let on_disk = std::fs::read_to_string(path).unwrap_or_default();
        let now = super::markdown();
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(path, &now).unwrap();
        } else {
            assert!(on_disk == now, "SCHEMA.md is out of date: run `make schema`");
        }
    }

    #[test]
    fn every_column_has_a_meaning() {
        let missing: Vec<_> = super::markdown().lines().filter(|l| l.ends_with("|  |")).map(str::to_string).collect();
        assert!(missing.is_empty(), "columns without a doc comment: {missing:?}");
    }
}
