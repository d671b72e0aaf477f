// SPDX-License-Identifier: Apache-2.0
//! Garbage collectors, told by the functions that they enter through, or by the names of their threads.

/// A runtime's collector.
pub struct Collector {
    /// For people.
    pub runtime: &'static str,
    /// Beginnings of the names of functions that do nothing but collect.
    functions: &'static [&'static str],
    /// Beginnings of the names of threads that do nothing but collect.
    threads: &'static [&'static str],
    /// What makes it collect less often.
    pub less_often: &'static str,
}

/// Those that are known.
const ALL: &[Collector] = &[
    Collector {
        runtime: "Go",
        functions: &[
            "runtime.gcBgMarkWorker",
            "runtime.gcAssistAlloc",
            "runtime.gcStart",
            "runtime.gcMarkDone",
            "runtime.gcMarkTermination",
            "runtime.bgsweep",
            "runtime.bgscavenge",
            "runtime.deductSweepCredit",
        ],
        threads: &[],
        less_often: "raise GOGC or set GOMEMLIMIT, and keep fewer pointers",
    },
    Collector {
        runtime: "the Java VM",
        functions: &[],
        threads: &["GC Thread#", "G1 ", "ParGC", "ZWorker", "ZDriver", "Shenandoah", "VM Thread"],
        less_often: "give it more heap (-Xmx), and look at what fills it",
    },
    Collector {
        runtime: "V8 (Node.js)",
        functions: &[
            "v8::internal::Heap::CollectGarbage",
            "v8::internal::Heap::PerformGarbageCollection",
            "v8::internal::ConcurrentMarking::",
            "v8::internal::ScavengerCollector::",
            "v8::internal::Sweeper::",
            "v8::internal::PageEvacuationTask::",
            "v8::internal::IncrementalMarking",
        ],
        threads: &[],
        less_often: "raise --max-semi-space-size or --max-old-space-size, and keep fewer objects",
    },
    Collector {
        runtime: "Python",
        functions: &["gc_collect_main", "gc_collect_generations", "deduce_unreachable", "_PyGC_Collect"],
        threads: &[],
        less_often: "raise the thresholds (gc.set_threshold) or freeze what stays (gc.freeze)",
    },
];

impl Collector {
    /// The collector that a thread of this name, or with these functions on its stack, works for.
    pub fn of<'s>(thread: &str, mut functions: impl Iterator<Item = &'s str>) -> Option<&'static Self> {
        let by_thread = ALL.iter().find(|c| c.threads.iter().any(|name| thread.starts_with(name)));
        by_thread.or_else(|| functions.find_map(Self::of_function))
    }

    fn of_function(function: &str) -> Option<&'static Self> {
        ALL.iter().find(|c| c.functions.iter().any(|name| function.starts_with(name)))
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
}
