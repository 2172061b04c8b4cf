//! JSON whose fields stay in their order.

use serde::{Serialize, Serializer};

use crate::summary::escape_hostile;

pub(crate) const SCHEMA: &str = "loadgen.report/1";

#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Node {
    Leaf(serde_json::Value),
    List(Vec<Node>),
    Fields(#[serde(serialize_with = "in_order")] Vec<(&'static str, Node)>),
}

fn in_order<S: Serializer>(fields: &[(&str, Node)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(fields.iter().map(|(name, node)| (name, node)))
}

impl<T: Into<serde_json::Value>> From<T> for Node {
    fn from(value: T) -> Node {
        Node::Leaf(value.into())
    }
}

pub(crate) fn nodes<I: IntoIterator, N: Into<Node>>(of: I, node: impl Fn(I::Item) -> N) -> Node {
    Node::List(of.into_iter().map(|item| node(item).into()).collect())
}

/// Indented JSON without characters that a terminal would obey.
pub(crate) fn pretty(report: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(report).expect("maps with string keys, and no I/O");
    escape_hostile(text + "\n")
}
