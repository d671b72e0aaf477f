// SPDX-License-Identifier: Apache-2.0
//! A table piece by piece: only the rows and columns that are asked for, sealed or not, in memory that does not grow with
//! the recording.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::ops::Range;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wakewalk_recording::tables::{Counter, Frame, Gap};
use wakewalk_recording::{Meta, Sink, Table, Writer, slices};

/// Two columns of table `counter`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Value {
    t_ns: u64,
    value: f64,
}

impl Table for Value {
    const NAME: &'static str = "counter";
}

fn counters(second: u64, names: u64) -> Vec<Counter> {
    let row = |name| Counter {
        t_ns: second * 1_000_000_000,
        source: "proc/net/netstat".into(),
        entity: "TcpExt".into(),
        name: format!("Counter{name}"),
        value: (second * names + name) as f64,
    };
    (0..names).map(row).collect()
}

fn write(dir: &Path, seconds: u64, names: u64) -> Writer {
    let mut writer = Writer::create(dir, &Meta::default()).unwrap();
    for second in 0..seconds {
        writer.append(&counters(second, names)).unwrap();
    }
    writer
}

fn times<T: Table>(dir: &Path, range: Range<u64>, time: fn(&T) -> u64) -> Vec<u64> {
    slices::<T>(dir, range).unwrap().flat_map(Result::unwrap).map(|row| time(&row)).collect()
}

#[test]
fn a_part_of_the_rows_and_of_the_columns_sealed_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = write(dir.path(), 10, 2);
    writer.append(&[Frame { id: 1, symbol: "work".into(), ..Frame::default() }]).unwrap();
    let second = 1_000_000_000;
    let part = || times(dir.path(), 3 * second..5 * second, |row: &Value| row.t_ns / 1_000_000_000);
    assert_eq!(part(), [3, 3, 4, 4]);
    writer.seal(&Meta::default()).unwrap();
    assert_eq!(part(), [3, 3, 4, 4]);
    assert_eq!(times(dir.path(), 0..u64::MAX, |row: &Counter| row.t_ns).len(), 20);
    let whole: Vec<Counter> = slices(dir.path(), 9 * second..10 * second).unwrap().flat_map(Result::unwrap).collect();
    assert_eq!(whole, counters(9, 2));
    assert_eq!(times(dir.path(), 5..6, |frame: &Frame| frame.id.into()), [1], "frames have no time");
    assert_eq!(times(dir.path(), 0..9, |_: &Gap| 0), Vec::<u64>::new(), "a table that is not there has no rows");
}

#[test]
fn a_stream_ends_at_its_tear_and_a_damaged_file_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = write(dir.path(), 10, 2);
    let hot = dir.path().join("counter.arrows");
    let bytes = fs::read(&hot).unwrap();
    fs::write(&hot, &bytes[..bytes.len() / 2]).unwrap();
    let torn = times(dir.path(), 0..u64::MAX, |row: &Value| row.t_ns).len();
    assert!((2..20).contains(&torn), "{torn}");
    fs::write(&hot, &bytes).unwrap();
    writer.seal(&Meta::default()).unwrap();
    let sealed = dir.path().join("counter.parquet");
    let bytes = fs::read(&sealed).unwrap();
    fs::write(&sealed, &bytes[..bytes.len() / 2]).unwrap();
    let said = slices::<Value>(dir.path(), 0..9).err().map(|e| format!("{e:#}")).unwrap();
    assert!(said.contains("damaged or cut off"), "{said}");
}
