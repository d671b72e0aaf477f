// SPDX-License-Identifier: Apache-2.0
//! SQL, as PostgreSQL and MySQL are asked: the verb and the first table of a statement. Of what stands between quotes, in
//! numbers and in comments nothing is kept, and only a name that follows `from`, `into` and the like is taken for a table.

mod words;

use super::{ANY, without_numbers};
use words::{Word, Words};

/// No message of a client is longer: what seems to be is another protocol.
const LONGEST: u32 = 1 << 24;

/// A session begins: greeting, password, key exchange.
const CONNECT: &str = "connect";
/// A statement that was named before is carried out; what it says is not told again.
const PREPARED: &str = "prepared statement";

/// A message to PostgreSQL's server.
pub fn postgresql(opening: &[u8]) -> Option<String> {
    const FIRST: [[u8; 4]; 3] = [[0, 3, 0, 0], [4, 210, 22, 47], [4, 210, 22, 48]]; // a session, TLS, GSS
    if opening.len() >= 8 && opening[..2] == [0, 0] && FIRST.iter().any(|code| opening[4..8] == *code) {
        return Some(CONNECT.to_owned());
    }
    let (kind, rest) = opening.split_first()?;
    let (length, body) = rest.split_first_chunk::<4>()?;
    let length = u32::from_be_bytes(*length);
    if !(5..LONGEST).contains(&length) {
        return None;
    }
    let body = &body[..body.len().min(length as usize - 4)];
    match kind {
        b'Q' => statement(until_zero(body)),
        b'P' => statement(until_zero(body.get(until_zero(body).0.len() + 1..)?)),
        b'B' => body.contains(&0).then(|| PREPARED.to_owned()),
        b'p' => Some(CONNECT.to_owned()),
        _ => None,
    }
}

/// A packet to MySQL's server.
pub fn mysql(opening: &[u8]) -> Option<String> {
    let (head, body) = opening.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
    let is_login = || length >= 32 && body.get(13..32).is_some_and(|zeros| zeros.iter().all(|byte| *byte == 0));
    let (command, rest) = body.split_first()?;
    let rest = &rest[..rest.len().min(length.checked_sub(1)?)];
    let cut = rest.len() < length - 1;
    match (head[3], command) {
        (1, _) if is_login() => Some(CONNECT.to_owned()),
        // Since 8.0, how many attributes a query has comes first: none, of one set.
        (0, 3) => statement((rest.strip_prefix(&[0, 1]).unwrap_or(rest), cut)),
        (0, 22) => statement((rest, cut)),
        (0, 23) if rest.get(5..9) == Some(&[1, 0, 0, 0]) => Some(PREPARED.to_owned()),
        (0, 14) if length == 1 => Some("PING".to_owned()),
        _ => None,
    }
}

/// Text up to its end, and whether that is not there.
fn until_zero(bytes: &[u8]) -> (&[u8], bool) {
    let end = bytes.iter().position(|byte| *byte == 0);
    (&bytes[..end.unwrap_or(bytes.len())], end.is_none())
}

/// Where the first table of a statement stands.
#[derive(Clone, Copy)]
enum Table {
    /// Nowhere, or it does not matter.
    None,
    /// After the verb.
    Next,
    /// After a word.
    After(&'static str),
}

const VERBS: [(&str, Table); 36] = [
    ("SELECT", Table::After("FROM")),
    ("WITH", Table::After("FROM")),
    ("INSERT", Table::After("INTO")),
    ("REPLACE", Table::After("INTO")),
    ("MERGE", Table::After("INTO")),
    ("UPDATE", Table::Next),
    ("DELETE", Table::After("FROM")),
    ("TRUNCATE", Table::Next),
    ("COPY", Table::Next),
    ("CALL", Table::Next),
    ("CREATE", Table::After("TABLE")),
    ("ALTER", Table::After("TABLE")),
    ("DROP", Table::After("TABLE")),
    ("LOCK", Table::After("TABLE")),
    ("REFRESH", Table::After("VIEW")),
    ("BEGIN", Table::None),
    ("START", Table::None),
    ("COMMIT", Table::None),
    ("END", Table::None),
    ("ROLLBACK", Table::None),
    ("SAVEPOINT", Table::None),
    ("RELEASE", Table::None),
    ("SET", Table::None),
    ("RESET", Table::None),
    ("SHOW", Table::None),
    ("USE", Table::None),
    ("EXPLAIN", Table::None),
    ("ANALYZE", Table::None),
    ("VACUUM", Table::None),
    ("PREPARE", Table::None),
    ("EXECUTE", Table::None),
    ("DEALLOCATE", Table::None),
    ("DECLARE", Table::None),
    ("FETCH", Table::None),
    ("LISTEN", Table::None),
    ("DISCARD", Table::None),
];

/// Words that may stand between the one that announces a table and its name.
const BETWEEN: [&str; 10] =
    ["ONLY", "IGNORE", "LOW_PRIORITY", "QUICK", "DELAYED", "LATERAL", "TABLE", "IF", "NOT", "EXISTS"];

/// Verb and table of a statement; `cut` = its end is not known. None = it does not begin with a verb.
fn statement((text, cut): (&[u8], bool)) -> Option<String> {
    let mut words = Words::new(text, cut);
    let Word::Name(verb) = words.next()? else { return None };
    let (verb, table) = VERBS.into_iter().find(|(known, _)| verb.eq_ignore_ascii_case(known.as_bytes()))?;
    let table = match table {
        Table::None => None,
        Table::Next => name(&mut words),
        Table::After(word) => after(&mut words, word),
    };
    Some(table.map_or_else(|| verb.to_owned(), |table| format!("{verb} {table}")))
}

/// The table after the first such word that announces one: in brackets only where a query stands there, because `FROM` is a
/// part of some functions too.
fn after(words: &mut Words<'_>, wanted: &str) -> Option<String> {
    let mut brackets: Vec<bool> = Vec::new(); // whether a query stands in each that is open
    let mut before: &[u8] = b"";
    while let Some(word) = words.next() {
        match word {
            Word::Other(b'(') => brackets.push(false),
            Word::Other(b')') => drop(brackets.pop()),
            Word::Name(name) if before == b"(" => {
                let is_query = [&b"SELECT"[..], b"WITH"].iter().any(|query| name.eq_ignore_ascii_case(query));
                brackets.last_mut().into_iter().for_each(|open| *open = is_query);
            }
            Word::Name(found) if found.eq_ignore_ascii_case(wanted.as_bytes()) => {
                let is_it = brackets.last() != Some(&false) && !before.eq_ignore_ascii_case(b"DISTINCT");
                let mut ahead = *words;
                if let Some(name) = is_it.then(|| name(&mut ahead)).flatten() {
                    return Some(name);
                }
            }
            _ => {}
        }
        before = match word {
            Word::Name(name) => name,
            Word::Other(b'(') => b"(",
            _ => b"",
        };
    }
    None
}

/// The name of a table, `shop.orders`, without quotes.
fn name(words: &mut Words<'_>) -> Option<String> {
    const MOST_PARTS: usize = 3;
    let between = |word: &Word<'_>| matches!(word, Word::Name(name) if BETWEEN.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes())));
    let mut parts: Vec<String> = Vec::new();
    let mut word = words.find(|word| !between(word))?;
    while let Word::Name(part) | Word::Quoted(part) = word {
        parts.push(plain(part));
        let mut ahead = *words;
        let next = (ahead.next(), ahead.next());
        match next {
            (Some(Word::Other(b'.')), Some(part)) if parts.len() < MOST_PARTS => (word, *words) = (part, ahead),
            (Some(Word::Other(b'.')), _) => return None, // cut off, or no name
            _ => break,
        }
    }
    (!parts.is_empty()).then(|| parts.join("."))
}

/// A name without what is no part of usual ones, and without numbers: `events_2024` is one of many.
fn plain(name: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    match std::str::from_utf8(name) {
        Ok(word) if name.iter().all(is_plain) => without_numbers(word),
        _ => ANY.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        statement((text.as_bytes(), false)).unwrap_or_else(|| "none".into())
    }

    #[test]
    fn verb_and_first_table() {
        assert_eq!(of("select a, b from orders o join items i on true where x = 'secret'"), "SELECT orders");
        assert_eq!(of("  /* route=secret */ -- more\n SELECT 1 FROM \"Shop\".\"Items\""), "SELECT Shop.Items");
        assert_eq!(of("INSERT INTO `events_2024_01` (a) VALUES ('secret')"), "INSERT events_*_01");
        assert_eq!(of("insert ignore into t values (1)"), "INSERT t");
        assert_eq!(of("UPDATE ONLY a.b.c SET e = 1"), "UPDATE a.b.c");
        assert_eq!(of("delete from t"), "DELETE t");
        assert_eq!(of("TRUNCATE TABLE t"), "TRUNCATE t");
        assert_eq!(of("create table if not exists t (id int)"), "CREATE t");
        assert_eq!(of("with x as (select 1 from a) select 2 from x"), "WITH a");
        assert_eq!(of("select * from (select 1 from inner_one) q"), "SELECT inner_one");
        assert_eq!(
            (of("BEGIN"), of("set names 'secret'"), of("SELECT 1")),
            ("BEGIN".into(), "SET".into(), "SELECT".into())
        );
    }

    #[test]
    fn functions_and_values_are_no_tables() {
        assert_eq!(of("select extract(year from secret) from t"), "SELECT t");
        assert_eq!(of("select a is distinct from secret from t"), "SELECT t");
        assert_eq!(of("select ' from secret ', \" from secret\", 'it''s from secret' from t"), "SELECT t");
        assert_eq!(
            of("select 'it\\'s from secret' from t"),
            "SELECT",
            "a backslash means one thing here, another there"
        );
        assert_eq!(of("select $$ from secret $$ from t"), "SELECT");
        assert_eq!(of("select 1 from \"a secret\""), "SELECT *");
        assert_eq!((of("secret from t"), of(""), of("'select'")), ("none".into(), "none".into(), "none".into()));
    }

    #[test]
    fn what_was_cut_off_is_not_guessed() {
        let cut = |text: &str| statement((text.as_bytes(), true)).unwrap_or_else(|| "none".into());
        assert_eq!((cut("select a from orde"), cut("select a from shop.ord")), ("SELECT".into(), "SELECT".into()));
        assert_eq!(
            (cut("select a from orders "), cut("sel"), cut("select 'a from t ")),
            ("SELECT orders".into(), "none".into(), "SELECT".into())
        );
    }

    #[test]
    fn messages_to_postgresql() {
        let of = |bytes: &[u8]| postgresql(bytes).unwrap_or_else(|| "none".into());
        assert_eq!(of(b"Q\0\0\0\x1bselect 1 from accounts\0"), "SELECT accounts");
        assert_eq!(of(b"P\0\0\0\x20s1\0update t set a = $1\0\0\0D\0\0\0\x06S\0"), "UPDATE t");
        assert_eq!(of(b"B\0\0\0\x10\0s1\0\0\0\0\x01\0\0\0\x06secret"), PREPARED);
        assert_eq!(
            (of(b"\0\0\0\x08\x04\xd2\x16\x2f"), of(b"\0\0\0\x29\0\x03\0\0user\0secret\0")),
            (CONNECT.into(), CONNECT.into())
        );
        assert_eq!(
            (of(b"Question"), of(b"Q\0\0\0\x05\0"), of(b"Q\0\0\0\x0bsecret\0")),
            ("none".into(), "none".into(), "none".into())
        );
    }

    #[test]
    fn packets_to_mysql() {
        let of = |bytes: &[u8]| mysql(bytes).unwrap_or_else(|| "none".into());
        assert_eq!(of(b"\x10\0\0\0\x03select 1 from t"), "SELECT t");
        assert_eq!(of(b"\x12\0\0\0\x03\0\x01select 1 from t"), "SELECT t");
        assert_eq!(of(b"\x17\0\0\0\x16delete from t where a="), "DELETE t");
        assert_eq!(of(b"\x0a\0\0\0\x17\x01\0\0\0\0\x01\0\0\0"), PREPARED);
        assert_eq!(
            (of(b"\x01\0\0\0\x0e"), of(b"\x01\0\0\0\x01"), of(b"\0\0\0\0")),
            ("PING".into(), "none".into(), "none".into())
        );
        let login = [&[60, 0, 0, 1][..], &[0x85, 0xa6, 0xff, 1, 0, 0, 0, 1, 45], &[0; 23], b"secret\0"].concat();
        assert_eq!(of(&login), CONNECT);
    }
}
