// SPDX-License-Identifier: Apache-2.0
//! Writes the inputs that fuzzing begins with, `seeds CORPORA FIXTURES PROGRAM`: the golden recordings, files
//! of this machine's /proc, a small program, and empty events of every kind.

use std::path::Path;
use std::{env, fs, io};

// Nothing of it is called: the coverage hooks in the other crates refer to the engine.
use libfuzzer_sys as _;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [corpora, fixtures, program] = &arguments[..] else {
        return Err(io::Error::other("usage: seeds CORPORA FIXTURES PROGRAM"));
    };
    let corpora = Path::new(corpora);
    write(&corpora.join("recording"), recording::fuzzing::seeds(Path::new(fixtures)))?;
    write(&corpora.join("proc"), collect::fuzzing::seeds_of_proc())?;
    write(&corpora.join("events"), collect::fuzzing::seeds_of_events())?;
    let asked: [&[u8]; 5] = [
        b"GET /a/4711?b=c HTTP/1.1\r\n",
        b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
        b"Q\0\0\0\x1bselect 1 from accounts\0",
        b"P\0\0\0\x1ds1\0update t set a = $1\0\0\0",
        b"\x10\0\0\0\x03select 1 from t",
    ];
    write(&corpora.join("labels"), asked.map(<[u8]>::to_vec).into())?;
    let answers: [&[u8]; 3] = [
        b"\x03HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        b"\x07HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\nok\r\n0\r\nA: b\r\n\r\n",
        b"\x01HTTP/1.0 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    ];
    write(&corpora.join("replies"), answers.map(<[u8]>::to_vec).into())?;
    let requests: [&[u8]; 3] = [
        b"\x03GET /a HTTP/1.1\r\nHost: b\r\n\r\nHEAD / HTTP/1.0\r\n\r\n",
        b"\x07PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        b"\x01POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\nok\r\n0\r\nA: b\r\n\r\n",
    ];
    write(&corpora.join("requests"), requests.map(<[u8]>::to_vec).into())?;
    let maps = [b"m".to_vec(), fs::read("/proc/self/maps")?].concat();
    let map = b"p10 20 JS:*spin /srv/a b.js:3\n1000 8 main\n".to_vec();
    let elf = [b"e".to_vec(), fs::read(program)?].concat();
    write(&corpora.join("elf"), vec![elf, map, maps])
}

fn write(folder: &Path, inputs: Vec<Vec<u8>>) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    inputs.iter().enumerate().try_for_each(|(n, input)| fs::write(folder.join(format!("seed-{n}")), input))
}
