//! Keeps `docs/summary.schema.json` equal to the types.

use super::Summary;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/summary.schema.json");

/// `LOADGEN_BLESS=1 cargo test --lib summary::schema` writes it anew after a change.
#[test]
fn the_committed_schema_is_that_of_the_types() {
    let schema = schemars::schema_for!(Summary);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    text.push('\n');
    if std::env::var_os("LOADGEN_BLESS").is_some() {
        std::fs::write(PATH, &text).expect("docs/ can be written");
    }
    let committed = std::fs::read_to_string(PATH).unwrap_or_default();
    assert!(
        committed == text,
        "docs/summary.schema.json is stale; LOADGEN_BLESS=1 cargo test --lib summary::schema"
    );
}
