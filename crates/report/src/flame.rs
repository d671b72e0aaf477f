// SPDX-License-Identifier: Apache-2.0
//! Building a flame graph from stacks, and reading its hottest functions off it.
//!
//! A stack goes in root first. Equal frames under the same parent become one node; when all stacks are in,
//! [`FlameNode::finish`] sorts them and folds what is too narrow to see, so that a page stays small.

use std::collections::HashMap;

use crate::section::FlameNode;

/// Nodes narrower than this share of the whole are folded: half a pixel on a wide screen.
pub const SMALLEST_SHARE: f64 = 0.0005;

/// A graph has at most this many nodes, or a page with a few graphs would be slow to open; the narrowest go first.
pub const MOST_NODES: usize = 3_000;

/// How to read the graph; goes under each one. Left to right is by width only and must not be read as time.
pub const LEGEND: &str = "Width is the share of the whole. Height is depth: each frame was called by the one below it. \
    Left-to-right order means nothing.";

/// One frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Function.
    pub name: &'a str,
    /// As [`FlameNode::kind`].
    pub kind: &'a str,
    /// Binary or library; may be empty.
    pub module: &'a str,
}

/// A function with its costs, in the graph's unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Hot {
    /// Function.
    pub name: String,
    /// As [`FlameNode::kind`].
    pub kind: String,
    /// Binary or library.
    pub module: String,
    /// Its own work.
    pub own: f64,
    /// With all that it called; recursion counts once.
    pub total: f64,
}

impl FlameNode {
    /// An empty graph; `name` says what its whole is, `all on-CPU samples`.
    #[must_use]
    pub fn root(name: &str) -> Self {
        Self { name: name.to_owned(), kind: "thread".to_owned(), ..Self::default() }
    }

    /// Adds one stack, root first.
    pub fn insert<'a>(&mut self, path: impl IntoIterator<Item = Frame<'a>>, value: f64) {
        self.value += value;
        let mut node = self;
        for frame in path {
            node = node.child(frame);
            node.value += value;
        }
    }

    /// Adds one stack of one side, 0 = before, 1 = after, to a graph of differences.
    pub fn insert_side<'a>(&mut self, path: impl IntoIterator<Item = Frame<'a>>, side: usize, value: f64) {
        let add = |node: &mut FlameNode| node.sides.get_or_insert_default()[side] += value;
        add(self);
        let mut node = self;
        for frame in path {
            node = node.child(frame);
            add(node);
        }
    }

    /// Finishes a graph of differences. A frame is as wide as its own work on the larger side and all that it called:
    /// so what has gone is still there to be seen, and no callee is wider than its caller.
    #[must_use]
    pub fn finish_sides(mut self) -> Self {
        self.widen();
        self.finish()
    }

    fn widen(&mut self) {
        let mut own = self.sides.unwrap_or_default();
        self.value = 0.0;
        for child in &mut self.children {
            child.widen();
            self.value += child.value;
            own.iter_mut().zip(child.sides.unwrap_or_default()).for_each(|(own, part)| *own -= part);
        }
        self.value += own[0].max(own[1]).max(0.0);
    }

    fn child(&mut self, frame: Frame<'_>) -> &mut FlameNode {
        let same = |c: &FlameNode| c.name == frame.name && c.kind == frame.kind && c.module == frame.module;
        let at = self.children.iter().position(same).unwrap_or_else(|| {
            let [name, kind, module] = [frame.name, frame.kind, frame.module].map(str::to_owned);
            self.children.push(FlameNode { name, kind, module, ..FlameNode::default() });
            self.children.len() - 1
        });
        &mut self.children[at]
    }

    /// Sorts callees by value, equal ones by name, and folds into `(small)` those under [`SMALLEST_SHARE`] and
    /// those beyond [`MOST_NODES`].
    #[must_use]
    pub fn finish(mut self) -> Self {
        let mut values = Vec::new();
        self.add_values(&mut values);
        values.sort_by(|a, b| b.total_cmp(a));
        let too_narrow = values.get(MOST_NODES).copied().unwrap_or_default();
        let smallest = self.value * SMALLEST_SHARE;
        self.fold(&|value| value >= smallest && value > too_narrow);
        self
    }

    fn add_values(&self, values: &mut Vec<f64>) {
        values.push(self.value);
        self.children.iter().for_each(|child| child.add_values(values));
    }

    /// A callee is never wider than its caller, so what is kept is a tree.
    fn fold(&mut self, wide: &impl Fn(f64) -> bool) {
        let (mut kept, narrow): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.children).into_iter().partition(|c| wide(c.value));
        kept.iter_mut().for_each(|c| c.fold(wide));
        kept.sort_by(|a, b| b.value.total_cmp(&a.value).then_with(|| (&a.name, &a.module).cmp(&(&b.name, &b.module))));
        let value: f64 = narrow.iter().map(|c| c.value).sum();
        if value > 0.0 {
            let side = |i: usize| narrow.iter().map(|c| c.sides.unwrap_or_default()[i]).sum();
            let sides = self.sides.map(|_| [side(0), side(1)]);
            kept.push(FlameNode {
                name: "(small)".to_owned(),
                kind: "small".to_owned(),
                value,
                sides,
                ..Self::default()
            });
        }
        self.children = kept;
    }

    /// The functions with most own work, at most `count`. Threads and folded frames are not functions.
    #[must_use]
    pub fn hottest(&self, count: usize) -> Vec<Hot> {
        let mut costs = HashMap::new();
        self.add_costs(&mut Vec::new(), &mut costs);
        let mut hot: Vec<Hot> = costs
            .into_iter()
            .map(|((name, kind, module), (own, total))| {
                let [name, kind, module] = [name, kind, module].map(str::to_owned);
                Hot { name, kind, module, own, total }
            })
            .filter(|hot| hot.own > 0.0)
            .collect();
        hot.sort_by(|a, b| b.own.total_cmp(&a.own).then_with(|| (&a.name, &a.module).cmp(&(&b.name, &b.module))));
        hot.truncate(count);
        hot
    }

    fn add_costs<'n>(&'n self, above: &mut Vec<Key<'n>>, costs: &mut HashMap<Key<'n>, (f64, f64)>) {
        let key = (self.name.as_str(), self.kind.as_str(), self.module.as_str());
        if !matches!(self.kind.as_str(), "thread" | "small") {
            let (own, total) = costs.entry(key).or_default();
            *own += self.value - self.children.iter().map(|c| c.value).sum::<f64>();
            if !above.contains(&key) {
                *total += self.value;
            }
        }
        above.push(key);
        self.children.iter().for_each(|child| child.add_costs(above, costs));
        above.pop();
    }
}

/// Name, kind and module of a function.
type Key<'n> = (&'n str, &'n str, &'n str);

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(stacks: &[(&str, f64)]) -> FlameNode {
        let mut root = FlameNode::root("all");
        for (path, value) in stacks {
            root.insert(path.split(';').map(|name| Frame { name, kind: "native", module: "" }), *value);
        }
        root.finish()
    }

    fn folded(node: &FlameNode) -> String {
        let children: Vec<_> = node.children.iter().map(folded).collect();
        format!("{}={}[{}]", node.name, node.value, children.join(" "))
    }

    #[test]
    fn equal_frames_merge_and_the_widest_comes_first() {
        let root = graph(&[("a;b", 1.0), ("a;c", 3.0), ("a;b", 1.0), ("d", 9.0)]);
        assert_eq!(folded(&root), "all=14[d=9[] a=5[c=3[] b=2[]]]");
    }

    #[test]
    fn order_of_the_stacks_does_not_matter() {
        let (x, y) = (graph(&[("a", 1.0), ("b", 1.0), ("c", 1.0)]), graph(&[("c", 1.0), ("a", 1.0), ("b", 1.0)]));
        assert_eq!(folded(&x), folded(&y));
    }

    #[test]
    fn narrow_frames_are_folded_and_nothing_is_lost() {
        let root = graph(&[("a", 10_000.0), ("b", 2.0), ("c;d", 2.0), ("e", 1.0)]);
        assert_eq!(folded(&root), "all=10005[a=10000[] (small)=5[]]");
    }

    #[test]
    fn the_number_of_nodes_is_bounded() {
        let mut root = FlameNode::root("all");
        for i in 0..MOST_NODES / 2 {
            let name = i.to_string();
            root.insert([Frame { name: &name, kind: "native", module: "" }; 3], if i % 4 == 0 { 2.0 } else { 1.9 });
        }
        let root = root.finish();
        assert_eq!(root.children.len(), MOST_NODES / 8 + 1, "the wide ones and (small)");
        assert!((root.children.iter().map(|c| c.value).sum::<f64>() - root.value).abs() < 1e-6);
    }

    #[test]
    fn differences_keep_what_has_gone_and_callers_hold_their_callees() {
        let mut root = FlameNode::root("all");
        let frame = |name| Frame { name, kind: "native", module: "" };
        root.insert_side([frame("f"), frame("gone")], 0, 6.0);
        root.insert_side([frame("f")], 0, 1.0);
        root.insert_side([frame("f"), frame("new")], 1, 2.0);
        root.insert_side([frame("f")], 1, 3.0);
        let root = root.finish_sides();
        let f = &root.children[0];
        assert_eq!((root.value, f.value, f.sides), (11.0, 11.0, Some([7.0, 5.0])));
        let callees: Vec<_> = f.children.iter().map(|c| (c.name.as_str(), c.value, c.sides.unwrap())).collect();
        assert_eq!(callees, [("gone", 6.0, [6.0, 0.0]), ("new", 2.0, [0.0, 2.0])]);
    }

    #[test]
    fn own_cost_excludes_callees_and_recursion_counts_once() {
        let root = graph(&[("f;f;g", 4.0), ("f", 1.0)]);
        let hot = root.hottest(10);
        let costs: Vec<_> = hot.iter().map(|h| (h.name.as_str(), h.own, h.total)).collect();
        assert_eq!(costs, [("g", 4.0, 4.0), ("f", 1.0, 5.0)]);
    }
}
