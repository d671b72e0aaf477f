// SPDX-License-Identifier: Apache-2.0
use std::path::Path;

use libbpf_rs::btf::{Btf, types::Struct};
use testing::{given, need};

use super::{Out, Types, get};

/// `struct outer { struct inner { int number; } in; struct other *next; }` after a struct that nobody asks for.
fn made() -> Vec<u8> {
    let mut out = Out::default();
    let mut name = |name: &'static str| out.name(name.as_bytes());
    let [int, number, inner, within, outer, next, other] =
        ["int", "number", "inner", "in", "outer", "next", "other"].map(&mut name);
    let record = |members: u32| 4 << 24 | members;
    out.words = [
        &[other, record(1), 4, number, 2, 0][..],
        &[int, 1 << 24, 4, 32],
        &[0, 2 << 24, 1],
        &[inner, record(1), 4, number, 2, 0],
        &[outer, record(2), 16, within, 4, 0, next, 3, 64],
    ]
    .concat();
    out.bytes()
}

#[test]
fn what_is_named_is_kept_with_what_it_holds() {
    let made = made();
    let all = Types::parse(&made).unwrap();
    let kept = all.keep(&["outer", "unknown"]);
    let kept = Types::parse(&kept).unwrap();
    let spelled: Vec<_> = kept.ids().map(|id| kept.name(kept.whole(id)[0])).collect();
    assert_eq!(spelled, [&b"outer"[..], b"inner", b"", b"int"]);
    assert_eq!(kept.whole(1)[3..], [kept.whole(1)[3], 2, 0, kept.whole(1)[6], 3, 64], "members and where they lie");
    assert_eq!(kept.whole(3)[2], 0, "a pointer leads nowhere");
    assert_eq!(all.find(4, b"inner"), Some(4));
}

#[test]
fn torn_types_are_refused() {
    let made = made();
    for end in 0..made.len() {
        assert!(Types::parse(&made[..end]).is_none(), "{end} bytes");
    }
    let mut strange = made.clone();
    strange[24 + 7] = 31;
    assert!(Types::parse(&strange).is_none(), "a kind of type that nobody knows");
}

#[test]
fn the_kernels_own_lie_where_they_lay() {
    need!(given(Path::new(super::ALL).exists(), "the kernel has no type information"));
    let (all, few) = (Btf::from_path(super::ALL).unwrap(), Btf::from_path(&get().unwrap().path).unwrap());
    assert!(few.len() * 10 < all.len(), "{} of {}", few.len(), all.len());
    assert_eq!(all.type_by_id::<Struct<'_>>(get().unwrap().task.into()).unwrap().name().unwrap(), "task_struct");
    for name in ["task_struct", "file", "tcp_sock", "list_head"] {
        let members = |btf: &Btf<'_>| -> Vec<String> {
            let found = btf.type_by_name::<Struct<'_>>(name).unwrap();
            found.iter().map(|m| format!("{:?} {:?}", m.name, m.attr)).collect()
        };
        assert_eq!(members(&all), members(&few), "{name}");
    }
}
