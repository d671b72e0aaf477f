// SPDX-License-Identifier: Apache-2.0
//! Garbage collectors, told by the functions that they enter through, or by the names of their threads; and whether
//! the program stands still, or helps, meanwhile.

/// What the program does while its collector works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// It runs on: the collector works beside it, on CPUs that it finds.
    RunsOn,
    /// It stands still, or its own threads do the collector's work.
    Pauses,
}

/// A runtime's collector.
pub struct Collector {
    /// For people.
    pub runtime: &'static str,
    /// Beginnings of the names of functions that collect beside the program.
    beside: &'static [&'static str],
    /// Beginnings of the names of functions for which the program stops, or that its threads run themselves.
    instead: &'static [&'static str],
    /// Beginnings of the names of threads that collect beside the program.
    threads_beside: &'static [&'static str],
    /// Beginnings of the names of threads for which the program stops.
    threads_instead: &'static [&'static str],
    /// What makes it collect less often.
    pub less_often: &'static str,
}

/// Those that are known.
const ALL: &[Collector] = &[
    Collector {
        runtime: "Go",
        beside: &["runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge"],
        instead: &[
            "runtime.gcAssistAlloc",
            "runtime.gcStart",
            "runtime.gcMarkDone",
            "runtime.gcMarkTermination",
            "runtime.deductSweepCredit",
        ],
        threads_beside: &[],
        threads_instead: &[],
        less_often: "raise GOGC (200 halves the collections, the heap grows by half: is there memory for it?), keep fewer pointers",
    },
    Collector {
        runtime: "the Java VM",
        beside: &[],
        instead: &[],
        threads_beside: &["G1 ", "ZWorker", "ZDriver", "Shenandoah"],
        threads_instead: &["GC Thread#", "ParGC", "VM Thread"],
        less_often: "look at what fills its heap; more heap (-Xmx, if there is memory for it) makes collections rarer, and with some collectors longer",
    },
    Collector {
        runtime: "V8 (Node.js)",
        beside: &["v8::internal::ConcurrentMarking::", "v8::internal::Sweeper::"],
        instead: &[
            "v8::internal::Heap::CollectGarbage",
            "v8::internal::Heap::PerformGarbageCollection",
            "v8::internal::ScavengerCollector::",
            "v8::internal::PageEvacuationTask::",
            "v8::internal::IncrementalMarking",
        ],
        threads_beside: &[],
        threads_instead: &[],
        less_often: "raise --max-semi-space-size or --max-old-space-size, and keep fewer objects",
    },
    Collector {
        runtime: "Python",
        beside: &[],
        instead: &["gc_collect_main", "gc_collect_generations", "deduce_unreachable", "_PyGC_Collect"],
        threads_beside: &[],
        threads_instead: &[],
        less_often: "raise the thresholds (gc.set_threshold) or freeze what stays (gc.freeze)",
    },
];

impl Collector {
    /// The collector that a thread of this name, or with these functions on its stack, works for.
    pub fn of<'s>(thread: &str, functions: impl Iterator<Item = &'s str>) -> Option<&'static Self> {
        Self::at(thread, functions).map(|(collector, _)| collector)
    }

    /// The same with what the program does meanwhile.
    pub fn at<'s>(thread: &str, functions: impl Iterator<Item = &'s str>) -> Option<(&'static Self, Program)> {
        let functions: Vec<&str> = functions.collect();
        let on_stack = |names: &[&str]| functions.iter().any(|f| names.iter().any(|name| f.starts_with(name)));
        let in_thread = |names: &[&str]| names.iter().any(|name| thread.starts_with(name));
        ALL.iter().find_map(|c| {
            let pauses = in_thread(c.threads_instead) || on_stack(c.instead);
            let runs_on = || in_thread(c.threads_beside) || on_stack(c.beside);
            match pauses {
                true => Some((c, Program::Pauses)),
                false => runs_on().then_some((c, Program::RunsOn)),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_function_and_by_thread() {
        let of = |thread: &str, stack: &[&str]| Collector::of(thread, stack.iter().copied()).map(|c| c.runtime);
        assert_eq!(of("svc", &["runtime.scanobject", "runtime.gcDrain", "runtime.gcBgMarkWorker.func2"]), Some("Go"));
        assert_eq!(of("GC Thread#1", &[]), Some("the Java VM"));
        assert_eq!(
            of("node", &["v8::internal::Heap::CollectGarbage(v8::internal::AllocationSpace)"]),
            Some("V8 (Node.js)")
        );
        assert_eq!(of("svc", &["main.handler", "runtime.mallocgc"]), None);
    }

    #[test]
    fn whether_the_program_pauses() {
        let program = |thread: &str, stack: &[&str]| Collector::at(thread, stack.iter().copied()).map(|c| c.1);
        assert_eq!(program("svc", &["runtime.gcDrain", "runtime.gcBgMarkWorker"]), Some(Program::RunsOn));
        assert_eq!(program("svc", &["runtime.gcDrainN", "runtime.gcAssistAlloc", "main.f"]), Some(Program::Pauses));
        assert_eq!(program("G1 Conc#0", &[]), Some(Program::RunsOn));
        assert_eq!(program("GC Thread#0", &[]), Some(Program::Pauses));
    }
}
