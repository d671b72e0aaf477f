// SPDX-License-Identifier: Apache-2.0
//! Scenarios and their folders.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::*;

#[test]
fn every_folder_is_registered_under_its_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders: BTreeSet<String> =
        fs::read_dir(root.join("scenarios")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    let registered: BTreeSet<String> = ALL.iter().map(|s| s.name.to_string()).collect();
    assert_eq!(folders, registered);
}

#[test]
fn every_source_and_folder_is_there() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for scenario in ALL {
        for folder in scenario.folders {
            assert!(repository.join(folder).is_dir(), "{}: {folder}", scenario.name);
        }
        for build in scenario.builds {
            let source = build.source();
            assert!(repository.join(&source).exists(), "{}: {}", scenario.name, source.display());
        }
    }
}
