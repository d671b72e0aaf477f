// SPDX-License-Identifier: Apache-2.0
//! Tables in a bounded width: columns of numbers keep theirs, columns of words share the rest and wrap.
//! What does not fit even then is written as records, one `name: value` a line.

use std::io::{self, Write};

use textwrap::core::display_width;

use crate::section::Column;

use super::pen::{BOLD, DIM, PLAIN, Pen, pad, paint, wrap};

/// Columns between two columns of a table.
const GAP: usize = 2;

/// In front of each row.
const INDENT: usize = 2;

/// Columns of words narrower than this are not worth having.
const NARROWEST: usize = 12;

pub fn draw(pen: &mut Pen<'_, impl Write>, title: &str, columns: &[Column], rows: &[Vec<String>]) -> io::Result<()> {
    pen.caption(title)?;
    let Some(widths) = widths(pen.width, columns, rows) else {
        return records(pen, columns, rows);
    };
    let heads: Vec<String> = columns.iter().map(|column| column.title.clone()).collect();
    if heads.iter().any(|head| !head.is_empty()) {
        row(pen, columns, &widths, &heads, true)?;
    }
    rows.iter().try_for_each(|cells| row(pen, columns, &widths, cells, false))
}

/// Widths that fit the page, the widest column of words giving way first; none if there is no such.
fn widths(page: usize, columns: &[Column], rows: &[Vec<String>]) -> Option<Vec<usize>> {
    let natural = |i: usize, column: &Column| {
        let cells = rows.iter().filter_map(|row| row.get(i)).map(|cell| display_width(cell));
        cells.chain([display_width(&column.title)]).max().unwrap_or_default()
    };
    let mut widths: Vec<usize> = columns.iter().enumerate().map(|(i, column)| natural(i, column)).collect();
    let room = page.checked_sub(INDENT + GAP * columns.len().saturating_sub(1))?;
    while widths.iter().sum::<usize>() > room {
        let widest = (0..columns.len()).filter(|i| !columns[*i].right).max_by_key(|i| widths[*i])?;
        if widths[widest] <= NARROWEST {
            return None;
        }
        widths[widest] -= 1;
    }
    Some(widths)
}

fn row(
    pen: &mut Pen<'_, impl Write>,
    columns: &[Column],
    widths: &[usize],
    cells: &[String],
    head: bool,
) -> io::Result<()> {
    let wrapped: Vec<Vec<String>> = cells.iter().zip(widths).map(|(cell, width)| wrap(cell, *width)).collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or_default();
    for i in 0..height {
        let mut line = " ".repeat(INDENT);
        for (at, ((column, width), cell)) in columns.iter().zip(widths).zip(&wrapped).enumerate() {
            if at > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            let text = pad(cell.get(i).map_or("", String::as_str), *width, column.right);
            line.push_str(&paint(if head { DIM } else { PLAIN }, text.trim_end()));
            line.push_str(&" ".repeat(width - display_width(text.trim_end())));
        }
        pen.line(&line)?;
    }
    Ok(())
}

fn records(pen: &mut Pen<'_, impl Write>, columns: &[Column], rows: &[Vec<String>]) -> io::Result<()> {
    for cells in rows {
        for (i, (column, cell)) in columns.iter().zip(cells).enumerate() {
            let (indent, style) = if i == 0 { ("  ", BOLD) } else { ("    ", PLAIN) };
            let name = if i == 0 || column.title.is_empty() { String::new() } else { format!("{}: ", column.title) };
            pen.text(&format!("{name}{cell}"), style, indent, "      ")?;
        }
    }
    Ok(())
}
