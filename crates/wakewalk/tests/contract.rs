// SPDX-License-Identifier: Apache-2.0
//! The JSON of every command against its published schema, `docs/schema/`, by a validator that is not ours; and the exit
//! codes that go with it.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use collect::doctor::Health;
use diagnose::comparison::result::Comparison;
use diagnose::verdict::Verdict;
use report::bisect::{Answer as Hops, BesideAnswer};
use report::host::Look;
use report::load::{Answer, SweepAnswer};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value;
use tempfile::TempDir;
use testing::{given, need};

/// Each command that prints JSON: name of its schema, and the schema.
fn contracts() -> [(&'static str, Schema); 8] {
    [
        ("diagnose", schema::<Verdict>()),
        ("diff", schema::<Comparison>()),
        ("host", schema::<Look>()),
        ("doctor", schema::<Health>()),
        ("load", schema::<Answer>()),
        ("sweep", schema::<SweepAnswer>()),
        ("bisect", schema::<Hops>()),
        ("beside", schema::<BesideAnswer>()),
    ]
}

/// As it is written: a field that is left out where it says nothing is not required.
fn schema<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn wakewalk(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wakewalk")).args(args).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn the_published_schemas_are_up_to_date() {
    for (command, schema) in contracts() {
        let path = at(&format!("docs/schema/{command}.json"));
        let now = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, now).unwrap();
        } else {
            let on_disk = fs::read_to_string(&path).unwrap_or_default();
            assert!(on_disk == now, "{} is out of date: run `make schema`", path.display());
        }
    }
}

#[test]
fn every_field_is_explained() {
    fn look(place: &str, schema: &Value, mute: &mut Vec<String>) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            // What stands for a type alone is explained there.
            if field.get("description").is_none() && field.get("$ref").is_none() {
                mute.push(format!("{place}.{name}"));
            }
        }
    }
    for (command, schema) in contracts() {
        let (schema, mut mute) = (schema.to_value(), Vec::new());
        look(command, &schema, &mut mute);
        for (name, part) in schema["$defs"].as_object().into_iter().flatten() {
            look(name, part, &mut mute);
        }
        assert!(mute.is_empty(), "{command}: fields without a doc comment: {mute:?}");
    }
}

/// Forbids what the schema does not name. Readers of the contract must let new fields pass; we must not print any.
fn close(schema: &mut Value) {
    if let Some(object) = schema.as_object_mut() {
        if object.contains_key("properties") {
            object.entry("additionalProperties").or_insert(Value::Bool(false));
        }
        object.values_mut().for_each(close);
    } else if let Some(list) = schema.as_array_mut() {
        list.iter_mut().for_each(close);
    }
}

/// A web server that says yes to all; its address.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    format!("http://127.0.0.1:{port}/")
}

/// What the JSON in `dir` violates, one line each.
fn violations(dir: &Path) -> Result<String, String> {
    const VALIDATE: &str = "import glob, json, sys\ntry: from jsonschema import Draft202012Validator as V\n\
        except ImportError: sys.exit('no jsonschema')\n\
        for schema in glob.glob(sys.argv[1] + '/*.schema'):\n    v = V(json.load(open(schema)))\n\
        \x20   for answer in sorted(glob.glob(schema[:-len('.schema')] + '.*.json')):\n\
        \x20       for e in v.iter_errors(json.load(open(answer))): print(answer, e.json_path, e.message)";
    let run = Command::new("python3").args(["-c", VALIDATE]).arg(dir).output().map_err(|e| format!("python3: {e}"))?;
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    given(run.status.success(), &said).map_err(|why| format!("python3-jsonschema cannot be used: {why}"))?;
    Ok(String::from_utf8_lossy(&run.stdout).into_owned())
}

fn fixtures() -> Vec<String> {
    let all = fs::read_dir(at("lab/fixtures")).unwrap();
    let all = all.map(|entry| entry.unwrap().path().join("recording").to_str().unwrap().to_string());
    all.collect()
}

/// Answers of commands beside the schemas that they have to keep.
struct Answers(TempDir);

impl Answers {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (command, schema) in contracts() {
            let mut schema = schema.to_value();
            close(&mut schema);
            fs::write(dir.path().join(format!("{command}.schema")), schema.to_string()).unwrap();
        }
        Self(dir)
    }

    /// One more answer, which has to be a success.
    fn add(&self, command: &str, case: &str, args: &[&str]) -> Value {
        let out = wakewalk(args);
        assert_eq!(out.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        fs::write(self.0.path().join(format!("{command}.{case}.json")), &out.stdout).unwrap();
        serde_json::from_slice(&out.stdout).unwrap()
    }

    fn violations(&self) -> Result<String, String> {
        violations(self.0.path())
    }
}

/// A golden recording.
fn golden(name: &str) -> String {
    at(&format!("lab/fixtures/{name}/recording")).to_str().unwrap().to_string()
}

#[test]
fn every_command_keeps_its_contract() {
    let answers = Answers::new();
    for (case, recording) in fixtures().iter().enumerate() {
        let case = case.to_string();
        answers.add("diagnose", &case, &["diagnose", "--from", recording, "--json"]);
        answers.add("bisect", &case, &["bisect", "--from", recording, "--json"]);
    }
    let [busy, calm] = ["busy-poll", "busy-poll-twin"].map(golden);
    answers.add("diff", "two", &["diff", &calm, &busy, "--json"]);
    answers.add("diagnose", "baseline", &["diagnose", "--from", &busy, "--baseline", &calm, "--json"]);
    answers.add("host", "live", &["--for", "1s", "--json"]);
    answers.add("doctor", "live", &["doctor", "--json"]);
    let (address, other) = (server(), server());
    answers.add("load", "live", &["load", &address, "--rate", "50", "--for", "1s", "--slo", "1s", "--json"]);
    answers.add("sweep", "live", &["load", &address, "--sweep", "20..30", "--for", "2s", "--json"]);
    answers.add("beside", "live", &["bisect", &address, "--beside", &other, "--rate", "50", "--for", "1s", "--json"]);
    let wrong = need!(answers.violations());
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn parts_of_a_recording_and_promises_keep_it_too() {
    let answers = Answers::new();
    let slow = golden("few-slow");
    let whole = answers.add("diagnose", "every", &["diagnose", "--from", &slow, "--every", "2s", "--json"]);
    assert_eq!(whole["timeline"].as_array().unwrap().len(), 2, "{}", whole["timeline"]);
    let promised = answers.add("diagnose", "slo", &["diagnose", "--from", &slow, "--slo", "1ms", "--json"]);
    assert_eq!(promised["slo"]["kept"], false, "{}", promised["slo"]);
    let part = answers.add("diagnose", "at", &["diagnose", "--from", &slow, "--at", "1s..3s", "--json"]);
    assert!(part["window"]["seconds"].as_f64().unwrap() < 3.5, "{}", part["window"]);
    // Each side needs four slices, and no golden recording has eight.
    let parts = ["diff", &golden("queue-workers"), "--a", "0s..4s", "--b", "2s..6s", "--json"];
    let parts = answers.add("diff", "parts", &parts);
    assert!(parts["a"]["label"].as_str().unwrap().ends_with("from 0 s to 4 s"), "{}", parts["a"]);
    let wrong = need!(answers.violations());
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_command_that_is_started_keeps_it_too() {
    let health: Value = serde_json::from_slice(&wakewalk(&["doctor", "--json"]).stdout).unwrap();
    need!(given(health["bpf"] == true, "wakewalk doctor says that BPF cannot be used here"));
    let answers = Answers::new();
    let command = ["--", "sh", "-c", "while true; do head -c 100000 /dev/urandom; sleep 0.01; done"];
    let live = answers.add("diagnose", "live", &[&["diagnose", "--for", "2s", "--json"], &command[..]].concat());
    assert_eq!(live["target"]["comm"], "sh", "what the command prints is not among the answer");
    let wrong = need!(answers.violations());
    assert!(wrong.is_empty(), "{wrong}");
}

/// Runs what cannot be done: exit code 2, and one sentence; of an argument that nobody knows the parser's, with the usage behind.
fn refused(args: &[&str]) {
    let out = wakewalk(args);
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0), "{args:?}: {said}");
    let is_ours = said.starts_with("wakewalk: ") && said.trim_end().lines().count() == 1;
    let is_usage = said.starts_with("error: ") && said.contains("Usage: wakewalk");
    assert!((is_ours || is_usage) && !said.contains("panicked"), "{args:?}: {said}");
}

/// What cannot be done, for every command that `wakewalk --help` lists and the look at the host, which has no name. `NOBODY` is an
/// address at which nobody listens, `FEW-SLOW` a golden recording.
const REFUSED: &[&[&str]] = &[
    &["diagnose", "--from", "/nowhere/at/all", "--json"],
    &["diagnose", "--pid", "x", "--json"],
    &["diagnose", "--pid", "1", "--for", "1ms", "--json"],
    &["diagnose", "--pid", "1", "--at", "0s..1s", "--json"],
    &["diagnose", "--from", "FEW-SLOW", "--every", "1ms", "--json"],
    &["diagnose", "--from", "FEW-SLOW", "--slo", "5", "--json"],
    &["diagnose", "--from", "FEW-SLOW", "--at", "3s..1s", "--json"],
    &["diagnose", "--from", "FEW-SLOW", "--at", "900s..901s", "--json"],
    &["diagnose", "--from", "FEW-SLOW", "--baseline", "/nowhere/at/all", "--json"],
    &["diff", "/nowhere/at/all", "/nowhere/at/all", "--json"],
    &["diff", "FEW-SLOW", "--json"],
    &["diff", "FEW-SLOW", "--a", "5s", "--b", "0s..1s", "--json"],
    &["diff", "FEW-SLOW", "--a", "0s..1s", "--b", "1s..2s", "--json"],
    &["diff", "FEW-SLOW", "--a", "0s..4s", "--b", "900s..901s", "--json"],
    &["diff", "FEW-SLOW", "FEW-SLOW", "--per", "fortnight", "--json"],
    // A load, an endpoint, a sweep.
    &["load", "ftp://127.0.0.1/", "--rate", "5", "--json"],
    &["load", "NOBODY", "--rate", "5", "--for", "1s", "--json"],
    &["load", "NOBODY", "--rate", "fast", "--json"],
    &["load", "NOBODY", "--rate", "5", "--for", "1ms", "--json"],
    &["load", "NOBODY", "--rate", "5", "--slo", "5", "--json"],
    &["load", "NOBODY", "--rate", "5", "--delay", "5ms", "--json"],
    &["load", "NOBODY", "--rate", "5", "--save", "/proc/nowhere", "--json"],
    &["load", "--serve", "tcp://127.0.0.1:1"],
    &["load", "--serve", "http://127.0.0.1:1/", "--status", "99"],
    &["load", "NOBODY", "--sweep", "5..9", "--for", "2s", "--json"],
    &["load", "NOBODY", "--sweep", "9..5", "--json"],
    &["load", "NOBODY", "--sweep", "9", "--json"],
    &["load", "NOBODY", "--sweep", "5..9", "--html", "/no/such/folder/page.html", "--json"],
    // The hops of one run, and a service beside itself.
    &["bisect", "--from", "/nowhere/at/all", "--json"],
    &["bisect", "--pid", "1", "--for", "2h", "--json"],
    &["bisect", "--port", "http", "--json"],
    &["bisect", "NOBODY", "--beside", "NOBODY", "--rate", "5", "--json"],
    &["bisect", "NOBODY", "--beside", "http://127.0.0.1:1/", "--rate", "5", "--for", "1s", "--json"],
    &["bisect", "NOBODY", "--beside", "http://127.0.0.1:1/", "--rate", "0", "--json"],
    &["bisect", "NOBODY", "--beside", "http://127.0.0.1:1/", "--rate", "5", "--pairs", "3", "--json"],
    &["bisect", "NOBODY", "--beside", "gopher://127.0.0.1/", "--rate", "5", "--json"],
    &["doctor", "--jsn"],
    &["explain", "no-such-cause"],
    &["--for", "soon", "--json"],
    &["--for", "1ms", "--json"],
];

#[test]
fn what_cannot_be_done_is_exit_code_2_and_no_json() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (nobody, recording) = (format!("http://{nobody}/"), golden("few-slow"));
    let put = |word: &'static str| match word {
        "NOBODY" => nobody.clone(),
        "FEW-SLOW" => recording.clone(),
        word => word.to_string(),
    };
    for args in REFUSED {
        let args: Vec<String> = args.iter().map(|word| put(word)).collect();
        refused(&args.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn every_command_has_something_that_it_cannot_do() {
    let help = String::from_utf8(wakewalk(&["--help"]).stdout).unwrap();
    let commands = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    // A name stands two spaces in, what it means further.
    let names =
        commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|it| !it.is_empty()));
    let missing: Vec<&str> =
        names.filter(|name| *name != "help" && !REFUSED.iter().any(|args| args[0] == *name)).collect();
    assert!(missing.is_empty() && help.contains("diagnose"), "not tried: {missing:?}");
}
