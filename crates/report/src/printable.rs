// SPDX-License-Identifier: Apache-2.0
//! Strings that came from the target (names of threads, functions, files) made harmless.
//!
//! A process chooses its own name: it may hold terminal escapes that move the cursor, direction marks that
//! turn a line around, or markup. What would act instead of show is shown as an escape, `\x1b`.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a terminal or browser would act on this character, or hide it, instead of showing it.
fn acts(c: char) -> bool {
    let direction =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let invisible = matches!(c, '\u{00ad}' | '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
    c.is_control() || direction || invisible
}

/// The text with everything that would act replaced by a visible escape; one line stays one line.
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            c if !acts(c) => shown.push(c),
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            c if (c as u32) < 0x100 => push(&mut shown, format_args!("\\x{:02x}", c as u32)),
            c => push(&mut shown, format_args!("\\u{{{:x}}}", c as u32)),
        }
    }
    Cow::Owned(shown)
}

/// The text as HTML content or as the value of a quoted attribute.
#[must_use]
pub fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in self::text(text).chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// JSON with the characters that would act written as `\u` escapes: the same value for every reader.
///
/// `serde_json` escapes only what the grammar demands, U+0000 to U+001F; a terminal also acts on others.
/// Outside strings JSON is ASCII, so each such character is inside one.
#[must_use]
pub fn json(json: &str) -> String {
    escape_json(json, |c| acts(c) && c != '\n')
}

/// JSON for a `<script>` element: besides, nothing in it can end the element or open a comment.
#[must_use]
pub fn script_json(json: &str) -> String {
    escape_json(json, |c| (acts(c) && c != '\n') || matches!(c, '<' | '>' | '&'))
}

fn escape_json(json: &str, unwanted: impl Fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if unwanted(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                push(&mut escaped, format_args!("\\u{unit:04x}"));
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Appends formatted text; writing to a `String` cannot fail.
fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(arguments);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_shown() {
        assert_eq!(text("a\u{1b}[2Jb\u{9b}c\nd\te"), "a\\x1b[2Jb\\x9bc\\nd\\te");
        assert_eq!(text("gpj.\u{202e}exe\u{200b}"), "gpj.\\u{202e}exe\\u{200b}");
    }

    #[test]
    fn ordinary_text_is_not_touched() {
        for ordinary in ["std::vec::Vec<T>::push", "größe µs 調整 →", "a\u{a0}b"] {
            assert!(matches!(text(ordinary), Cow::Borrowed(same) if same == ordinary));
        }
    }

    #[test]
    fn markup_is_text() {
        assert_eq!(html("<b a='x' b=\"y\">&\u{1b}"), "&lt;b a=&#39;x&#39; b=&quot;y&quot;&gt;&amp;\\x1b");
    }

    #[test]
    fn json_keeps_its_value() {
        let value = serde_json::json!({"name": "</script><!--\u{1b}\u{9b}\u{2028}\u{e0001}&é"});
        let plain = serde_json::to_string_pretty(&value).unwrap();
        for escaped in [json(&plain), script_json(&plain)] {
            assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
            assert!(!escaped.contains(|c| acts(c) && c != '\n'));
        }
        assert!(!script_json(&plain).contains(['<', '>', '&']));
    }
}
