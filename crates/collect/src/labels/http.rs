// SPDX-License-Identifier: Apache-2.0
//! HTTP/1.x: the method and the path, without its query and with its ids left out.

use super::{ANY, CUT, MOST, without_numbers};

const METHODS: [&str; 15] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "PATCH",
    "OPTIONS",
    "CONNECT",
    "TRACE",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "REPORT",
];

/// The first line of a request, as far as it is known.
pub fn label(opening: &[u8]) -> Option<String> {
    let end = opening.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
    let line = &opening[..end.unwrap_or(opening.len())];
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let method = words.next()?;
    let method = METHODS.into_iter().find(|known| known.as_bytes() == method)?;
    let target = words.next()?;
    let version = words.next();
    // A line that is there to its end says which version it is of.
    let is_http = match version {
        Some(version) => version.starts_with(b"HTTP/1.") || end.is_none() && b"HTTP/1.".starts_with(version),
        None => end.is_none(),
    };
    let path = path(target, version.is_none())?;
    is_http.then(|| format!("{method} {path}").trim_end().to_owned())
}

/// What follows a request that has no body.
pub fn rest(opening: &[u8]) -> Option<&[u8]> {
    const END: &[u8] = b"\r\n\r\n";
    let has_none = [&b"GET "[..], b"HEAD ", b"DELETE ", b"OPTIONS "].iter().any(|method| opening.starts_with(method));
    let end = opening.windows(END.len()).position(|bytes| bytes == END).filter(|_| has_none)?;
    Some(&opening[end + END.len()..])
}

/// The path of what is asked for; `cut` = what follows is not known. None = it is no target of a request.
fn path(target: &[u8], cut: bool) -> Option<String> {
    let end = target.iter().position(|byte| matches!(byte, b'?' | b'#'));
    let (path, cut) = (&target[..end.unwrap_or(target.len())], cut && end.is_none());
    match path {
        [b'/', ..] => Some(folded(path, cut)),
        b"*" => Some(ANY.to_string()),
        _ => {
            let scheme = [&b"http://"[..], b"https://"].into_iter().find(|scheme| path.starts_with(scheme));
            // Whom it is asked of is no part of the label; a tunnel has nothing else.
            let Some(scheme) = scheme else { return path.contains(&b':').then(String::new) };
            let host = &path[scheme.len()..];
            let from = host.iter().position(|byte| *byte == b'/');
            Some(from.map_or_else(|| "/".to_owned(), |from| folded(&host[from..], cut)))
        }
    }
}

/// A path with its ids left out; of one that was cut off the last segment is not known.
fn folded(path: &[u8], cut: bool) -> String {
    let mut segments: Vec<String> = path.split(|byte| *byte == b'/').map(segment).collect();
    if let Some(last) = segments.last_mut().filter(|_| cut) {
        *last = CUT.to_string();
    }
    const METHOD: usize = 12; // with its blank, and a mark for what is cut off
    let mut all = String::new();
    for (at, segment) in segments.iter().enumerate() {
        if all.len() + segment.len() > MOST - METHOD {
            return all + "/…";
        }
        if at > 0 {
            all.push('/');
        }
        all.push_str(segment);
    }
    all
}

/// One segment of a path, or what stands for it.
fn segment(bytes: &[u8]) -> String {
    // What follows a `;` are parameters, such as the id of a session.
    let bytes = bytes.split(|byte| *byte == b';').next().unwrap_or_default();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'-');
    match std::str::from_utf8(bytes) {
        Ok(word) if bytes.iter().all(is_plain) && !is_id(word) => without_numbers(word),
        _ => ANY.to_string(),
    }
}

/// Whether a word is rather one of many than the name of something: a number, a UUID, a hash, a token.
fn is_id(word: &str) -> bool {
    const LONGEST_NAME: usize = 32;
    const SHORTEST_HASH: usize = 8;
    const SHORTEST_TOKEN: usize = 16;
    let count = |wanted: fn(&u8) -> bool| word.bytes().filter(wanted).count();
    let digits = count(u8::is_ascii_digit);
    let is_hash = || word.len() >= SHORTEST_HASH && word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let is_mixed = || digits > 2 || count(u8::is_ascii_uppercase) > 0 && count(u8::is_ascii_lowercase) > 0;
    let is_token = || word.len() >= SHORTEST_TOKEN && digits > 0 && is_mixed();
    word.len() > LONGEST_NAME || digits > 0 && (digits == word.len() || is_hash()) || is_token()
}

#[cfg(test)]
mod tests {
    fn label(text: &str) -> String {
        super::label(text.as_bytes()).unwrap_or_else(|| "none".into())
    }

    #[test]
    fn method_and_path_without_the_query() {
        assert_eq!(label("GET /search?q=secret HTTP/1.1\r\nCookie: a=b\r\n"), "GET /search");
        assert_eq!(label("POST / HTTP/1.0\n"), "POST /");
        assert_eq!(label("GET http://shop.example/cart/#top HTTP/1.1\r\n"), "GET /cart/");
        assert_eq!(label("GET http://shop.example HTTP/1.1\r\n"), "GET /");
        assert_eq!(label("OPTIONS * HTTP/1.1\r\n"), "OPTIONS *");
        assert_eq!(label("CONNECT secret.example:443 HTTP/1.1\r\n"), "CONNECT");
    }

    #[test]
    fn ids_are_left_out() {
        let path = |path: &str| label(&format!("GET {path} HTTP/1.1\r\n")).replacen("GET ", "", 1);
        assert_eq!(path("/users/4711/orders/12"), "/users/*/orders/*");
        assert_eq!(path("/d/3f2504e0-4f89-11d3-9a0c-0305e82c3301/x"), "/d/*/x");
        assert_eq!(path("/commit/deadbeef01"), "/commit/*");
        assert_eq!(path("/reset/dGhpc2lzYVRva2Vu9"), "/reset/*");
        assert_eq!(path("/u/ann%40example.org/me@example.org/a=b"), "/u/*/*/*");
        assert_eq!(path("/app;jsessionid=1A2B/list"), "/app/list");
        assert_eq!(path("/v2/base64/facade/report-2024.pdf"), "/v2/base64/facade/report-*.pdf");
        assert_eq!(path(&format!("/{}", "a".repeat(33))), "/*");
    }

    #[test]
    fn what_was_cut_off_is_not_guessed() {
        assert_eq!(label("GET /users/47"), "GET /users/…");
        assert_eq!(label("GET /users?na"), "GET /users");
        assert_eq!(label("GET /users HT"), "GET /users");
        let long = label(&format!("GET {} HTTP/1.1\r\n", "/segment".repeat(12)));
        assert!(long.ends_with("/segment/…") && long.chars().count() <= super::MOST, "{long}");
    }

    #[test]
    fn what_is_not_http() {
        for other in
            ["GET key\r\n", "GET /key\r\n", "GET", "GET ", "get / HTTP/1.1\r\n", "GET / SIP/2.0\r\n", "MOVE x y"]
        {
            assert_eq!(label(other), "none", "{other}");
        }
    }
}
