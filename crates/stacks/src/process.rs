// SPDX-License-Identifier: Apache-2.0
//! One address space of the target: its code mappings, and what is known of addresses in them.

use std::{
    collections::HashMap,
    fs::File,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    images::{Backing, Images},
    maps,
    names::perf_map::PerfMaps,
    row::Row,
    table::Code,
};

/// Pause between two readings of the mappings, at least; and as a multiple of what one took, so
/// that a process that keeps jumping into unmapped memory costs at most 1/50 of a CPU.
const MIN_PAUSE: Duration = Duration::from_millis(100);
const PAUSE_FACTOR: u32 = 50;

/// Addresses that are remembered.
const MAX_PLACES: usize = 1 << 16;

/// Where an address is, and how to get to its caller.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) code: Code,
    /// Number of the frame.
    pub(crate) frame: u32,
    /// Address as the image counts it, if the image says so.
    pub(crate) vaddr: Option<u64>,
    pub(crate) row: Option<Arc<Row>>,
}

struct Region {
    start: u64,
    end: u64,
    offset: u64,
    backing: Backing,
}

/// A process, from when it is first seen until it ends, executes another program or is displaced.
pub(crate) struct Process {
    pid: u32,
    regions: Vec<Region>,
    read_again: Instant,
    mem: Option<File>,
    /// Number of its address space in the list of perf maps, once there was code to look up.
    space: Option<u32>,
    pub(crate) places: Places,
    /// When it was last looked at, in samples; the one longest unused is displaced.
    pub(crate) used: u64,
}

/// The places of addresses that were looked up before.
#[derive(Default)]
pub(crate) struct Places(HashMap<u64, Place>);

impl Places {
    pub(crate) fn get(&self, address: u64) -> Option<Place> {
        self.0.get(&address).cloned()
    }

    pub(crate) fn insert(&mut self, address: u64, place: Place) {
        if self.0.len() >= MAX_PLACES {
            self.0.clear();
        }
        self.0.insert(address, place);
    }
}

impl Process {
    /// Looks at a process for the first time: reads its mappings and opens their files.
    pub(crate) fn new(pid: u32, images: &mut Images) -> Self {
        let mem = File::open(format!("/proc/{pid}/mem")).ok();
        let (regions, places) = Default::default();
        let mut process = Process { pid, regions, read_again: Instant::now(), mem, space: None, places, used: 0 };
        process.read(images);
        process
    }

    pub(crate) fn mem(&self) -> Option<&File> {
        self.mem.as_ref()
    }

    /// Which code is at `address`; reads the mappings again when it is in none that is known.
    pub(crate) fn code(&mut self, address: u64, images: &mut Images, perf_maps: &mut PerfMaps) -> Code {
        if self.region(address).is_none() && Instant::now() >= self.read_again {
            self.read(images);
        }
        match self.region(address) {
            None => Code::Unknown,
            Some(&Region { start, offset, backing: Backing::Image(id), .. }) => {
                Code::Image(id, (address - start).wrapping_add(offset))
            }
            Some(_) => {
                let space = *self.space.get_or_insert_with(|| perf_maps.space(self.pid));
                perf_maps.look(space);
                Code::Jit(space, address)
            }
        }
    }

    /// The process is no longer what it was; its JIT code gets no more names than are known now.
    pub(crate) fn end(&self, perf_maps: &mut PerfMaps) {
        if let Some(space) = self.space {
            perf_maps.end(space);
        }
    }

    fn region(&self, address: u64) -> Option<&Region> {
        let after = self.regions.partition_point(|r| r.start <= address);
        self.regions.get(after.checked_sub(1)?).filter(|r| address < r.end)
    }

    /// A process that is gone keeps the regions that were known.
    fn read(&mut self, images: &mut Images) {
        let before = Instant::now();
        if let Ok(mappings) = maps::read(self.pid)
            && !mappings.is_empty()
        {
            let (pid, mem) = (self.pid, self.mem.as_ref());
            let region = |m: &maps::Mapping| Region {
                start: m.start,
                end: m.end,
                offset: m.offset,
                backing: images.of(pid, m, mem),
            };
            self.regions = mappings.iter().map(region).collect();
            self.places = Places::default();
        }
        self.read_again = Instant::now() + MIN_PAUSE.max(before.elapsed() * PAUSE_FACTOR);
    }
}
