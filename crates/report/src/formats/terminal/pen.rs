// SPDX-License-Identifier: Apache-2.0
//! Writing lines of a bounded width: wrapping, hanging indents, styles, padding.
//!
//! Text that reaches a pen is printable already; every width here is in terminal columns, not characters.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use textwrap::core::display_width;
use textwrap::{Options, WordSplitter};

use crate::section::Tone;

pub const PLAIN: Style = Style::new();
pub const BOLD: Style = Style::new().bold();
pub const DIM: Style = Style::new().dimmed();

/// Units that must not be torn from their number at the end of a line.
const UNITS: &[&str] = &["%", "s", "ms", "µs", "ns", "B", "KiB", "MiB", "GiB", "TiB", "cores", "CPUs"];

/// Columns of the labels in front of the three first paragraphs.
const LABEL: usize = 6;

/// How a tone looks.
pub fn tone_style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => PLAIN,
        Tone::Good => AnsiColor::Green.on_default(),
        Tone::Warn => AnsiColor::Yellow.on_default(),
        Tone::Bad => AnsiColor::Red.on_default(),
        Tone::Dim => DIM,
    }
}

/// Text between the codes that start and end its style.
pub fn paint(style: Style, text: &str) -> String {
    if style == PLAIN || text.is_empty() { text.to_owned() } else { format!("{style}{text}{style:#}") }
}

/// Text filled with spaces up to `width` columns, on the left side if `right`.
pub fn pad(text: &str, width: usize, right: bool) -> String {
    let fill = " ".repeat(width.saturating_sub(display_width(text)));
    if right { fill + text } else { text.to_owned() + &fill }
}

/// The longest beginning of a text that fits into `width` columns, ended by `…` if something is missing.
pub fn clip(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        if display_width(&kept) + display_width(c.encode_utf8(&mut [0; 4])) >= width {
            break;
        }
        kept.push(c);
    }
    kept + "…"
}

/// Breaks text into lines of at most `width` columns; a number stays with its unit.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let glued = text.split(' ').fold(String::with_capacity(text.len()), |mut line, word| {
        let unit = UNITS.contains(&word.trim_end_matches(['.', ',', ';', ':', ')']));
        if !line.is_empty() {
            line.push(if unit && line.ends_with(|c: char| c.is_ascii_digit()) { '\u{a0}' } else { ' ' });
        }
        line + word
    });
    let options = Options::new(width.max(1)).word_splitter(WordSplitter::NoHyphenation);
    textwrap::wrap(&glued, options).into_iter().map(|line| line.replace('\u{a0}', " ")).collect()
}

/// Breaks a command between its words only: the path of a container's cgroup may be wider than the terminal.
fn words(command: &str, width: usize) -> Vec<String> {
    let options = Options::new(width.max(1)).word_splitter(WordSplitter::NoHyphenation).break_words(false);
    textwrap::wrap(command, options).into_iter().map(std::borrow::Cow::into_owned).collect()
}

/// Where the report is written, and how wide it may be.
pub struct Pen<'w, W: Write> {
    out: &'w mut W,
    /// Columns of the page.
    pub width: usize,
}

impl<'w, W: Write> Pen<'w, W> {
    pub fn new(out: &'w mut W, width: usize) -> Self {
        Self { out, width }
    }

    /// A finished line; the caller has kept to the width.
    pub fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.out, "{}", line.trim_end())
    }

    pub fn blank(&mut self) -> io::Result<()> {
        writeln!(self.out)
    }

    /// A heading with a thin line up to the right edge.
    pub fn rule(&mut self, title: &str) -> io::Result<()> {
        let title = clip(title, self.width - 4);
        let rest = "─".repeat(self.width - display_width(&title) - 1);
        self.line(&format!("{} {}", paint(BOLD, &title), paint(DIM, &rest)))
    }

    /// A caption over a block; nothing if it is empty.
    pub fn caption(&mut self, title: &str) -> io::Result<()> {
        if title.is_empty() { Ok(()) } else { self.text(title, DIM, "  ", "  ") }
    }

    /// A paragraph with its first and its further lines indented.
    pub fn text(&mut self, text: &str, style: Style, first: &str, hanging: &str) -> io::Result<()> {
        let mut indent = first;
        for line in wrap(text, self.width - display_width(hanging)) {
            self.line(&format!("{indent}{}", paint(style, &line)))?;
            indent = hanging;
        }
        Ok(())
    }

    /// A paragraph behind a label, `lead` standing out at its beginning.
    pub fn labelled(&mut self, label: &str, (lead, style): (&str, Style), text: &str) -> io::Result<()> {
        let lines = wrap(&format!("{lead}{text}"), self.width - LABEL);
        for (i, line) in lines.iter().enumerate() {
            let fill = " ".repeat(LABEL - if i == 0 { display_width(label) } else { 0 });
            let label = if i == 0 { paint(BOLD, label) } else { String::new() };
            let line = match line.strip_prefix(lead) {
                Some(rest) if i == 0 => paint(style, lead) + rest,
                _ => line.clone(),
            };
            self.line(&format!("{label}{fill}{line}"))?;
        }
        Ok(())
    }

    /// A command; where it must be broken, it still works when it is copied. A comment behind it goes on a line of
    /// its own, for a broken comment would be a command.
    pub fn command(&mut self, command: &str) -> io::Result<()> {
        let quoted = |text: &str| text.contains(['\'', '"']);
        let (command, comment) =
            command.rsplit_once("  # ").filter(|(_, comment)| !quoted(comment)).unwrap_or((command, ""));
        if !comment.is_empty() && display_width(command) + display_width(comment) + 10 <= self.width {
            let command = paint(AnsiColor::Cyan.on_default(), command);
            return self.line(&format!("    {}{command}  {}", paint(DIM, "$ "), paint(DIM, &format!("# {comment}"))));
        }
        if !comment.is_empty() {
            self.text(comment, DIM, "    # ", "    # ")?;
        }
        // Within quotes the sign for a broken line would be a part of the word, and a word in two is two.
        let lines = if quoted(command) { vec![command.to_owned()] } else { words(command, self.width - 8) };
        for (i, line) in lines.iter().enumerate() {
            let sign = if i == 0 { paint(DIM, "$ ") } else { "  ".to_owned() };
            let continued = if i + 1 < lines.len() { " \\" } else { "" };
            self.line(&format!("    {sign}{}{continued}", paint(AnsiColor::Cyan.on_default(), line)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_command_is_never_two() {
        let path = format!("/sys/fs/cgroup/system.slice/docker-{}.scope/cpu.stat", "3f".repeat(32));
        assert_eq!(words(&format!("cat {path} 2>/dev/null"), 72), ["cat", &path, "2>/dev/null"]);
    }
}
