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

#[test]
fn every_command_keeps_its_contract() {
    let dir = tempfile::tempdir().unwrap();
    for (command, schema) in contracts() {
        let mut schema = schema.to_value();
        close(&mut schema);
        fs::write(dir.path().join(format!("{command}.schema")), schema.to_string()).unwrap();
    }
    let answer = |command: &str, case: usize, args: &[&str]| {
        let out = wakewalk(args);
        assert_eq!(out.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        fs::write(dir.path().join(format!("{command}.{case}.json")), out.stdout).unwrap();
    };
    let fixtures = fixtures();
    for (case, recording) in fixtures.iter().enumerate() {
        answer("diagnose", case, &["diagnose", "--from", recording, "--json"]);
        answer("bisect", case, &["bisect", "--from", recording, "--json"]);
    }
    let [busy, calm] = ["busy-poll", "busy-poll-twin"].map(|name| format!("lab/fixtures/{name}/recording"));
    let [busy, calm] = [at(&busy), at(&calm)].map(|path| path.to_str().unwrap().to_string());
    answer("diff", 0, &["diff", &calm, &busy, "--json"]);
    answer("diagnose", fixtures.len(), &["diagnose", "--from", &busy, "--baseline", &calm, "--json"]);
    answer("host", 0, &["--for", "1s", "--json"]);
    answer("doctor", 0, &["doctor", "--json"]);
    let address = server();
    answer("load", 0, &["load", &address, "--rate", "50", "--for", "1s", "--slo", "1s", "--json"]);
    answer("sweep", 0, &["load", &address, "--sweep", "20..30", "--for", "1s", "--json"]);
    let other = server();
    answer("beside", 0, &["bisect", &address, "--beside", &other, "--rate", "50", "--for", "1s", "--json"]);
    let wrong = need!(violations(dir.path()));
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn an_error_is_exit_code_2_and_no_json() {
    let nowhere = "/nowhere/at/all";
    for args in [
        &["diagnose", "--from", nowhere, "--json"][..],
        &["diff", nowhere, nowhere, "--json"],
        &["--for", "soon", "--json"],
        &["doctor", "--jsn"],
    ] {
        let out = wakewalk(args);
        assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0), "{args:?}");
    }
}
