// SPDX-License-Identifier: Apache-2.0
//! Redis: the command alone, neither its keys nor its values. Of a pipeline, the first.

use super::Outcome;

/// Letters of the longest command.
const LONGEST: usize = 24;

/// Commands that people type, or that probes send, as a line of text. Text of other protocols looks alike, so only these count;
/// those of memcached among them are called alike there.
const TYPED: [&str; 24] = [
    "PING", "ECHO", "AUTH", "SELECT", "INFO", "GET", "SET", "DEL", "EXISTS", "KEYS", "SCAN", "TTL", "EXPIRE", "INCR",
    "DECR", "LPUSH", "RPUSH", "LPOP", "RPOP", "LRANGE", "HGET", "HSET", "HGETALL", "DBSIZE",
];

/// A command as clients send it: an array of strings.
pub fn array(opening: &[u8]) -> Option<String> {
    let (parts, rest) = number(opening.strip_prefix(b"*")?)?;
    let (length, rest) = number(rest.strip_prefix(b"$")?)?;
    let word = rest.get(..length).filter(|_| parts > 0 && (1..=LONGEST).contains(&length))?;
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'.' | b'_' | b'-');
    let is_whole = rest.len() == length || rest[length..].starts_with(b"\r");
    (is_whole && word.iter().all(is_letter)).then(|| upper(word))
}

/// What follows a command.
pub fn rest(opening: &[u8]) -> Option<&[u8]> {
    let Some(parts) = opening.strip_prefix(b"*") else {
        return opening.windows(2).position(|two| two == b"\r\n").map(|end| &opening[end + 2..]);
    };
    let (parts, mut rest) = number(parts)?;
    for _ in 0..parts {
        let (length, from) = number(rest.strip_prefix(b"$")?)?;
        rest = from.get(length..)?.strip_prefix(b"\r\n")?;
    }
    Some(rest)
}

/// A command as a line of text.
pub fn line(opening: &[u8]) -> Option<String> {
    let line = &opening[..opening.windows(2).position(|two| two == b"\r\n")?];
    let word = upper(line.split(|byte| *byte == b' ').next()?);
    TYPED.contains(&word.as_str()).then_some(word)
}

/// A number and what follows its line.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = std::str::from_utf8(&bytes[..digits]).ok()?.parse().ok()?;
    Some((number, bytes[digits..].strip_prefix(b"\r\n")?))
}

fn upper(word: &[u8]) -> String {
    String::from_utf8_lossy(word).to_ascii_uppercase()
}

/// What an answer says: an error, but for those by which a cluster sends its clients elsewhere, and for a script that is not there
/// yet, which clients send then.
pub fn outcome(answer: &[u8]) -> Outcome {
    match answer {
        _ if answer.starts_with(b"-MOVED") || answer.starts_with(b"-ASK ") => Outcome::Elsewhere,
        _ if answer.starts_with(b"-NOSCRIPT") => Outcome::Ok,
        [b'-', ..] => Outcome::Failed,
        [b'+' | b'$' | b':' | b'*' | b'_' | b',' | b'#' | b'%' | b'~' | b'(' | b'=', ..] => Outcome::Ok,
        _ => Outcome::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_without_keys_and_values() {
        assert_eq!(array(b"*3\r\n$3\r\nset\r\n$6\r\nsecret\r\n$1\r\nx\r\n").unwrap(), "SET");
        assert_eq!(array(b"*2\r\n$9\r\nFT.SEARCH\r\n$3\r\nidx").unwrap(), "FT.SEARCH");
        assert_eq!((line(b"PING\r\n").unwrap(), line(b"get secret\r\n").unwrap()), ("PING".into(), "GET".into()));
    }

    #[test]
    fn what_is_no_command() {
        let others =
            [&b"*3\r\n"[..], b"*0\r\n$3\r\nSET", b"*1\r\n$3\r\nSE", b"*1\r\n$3\r\nS T\r\n", b"*1\r\n$3\r\nSETX"];
        assert_eq!(others.map(array), [const { None }; 5]);
        assert_eq!(array(b"*1\r\n$99999999999999999999\r\nSET\r\n"), None);
        assert_eq!([&b"GET x"[..], b"MAIL FROM: x\r\n", b"secret\r\n", b"\r\n"].map(line), [const { None }; 4]);
    }
}
