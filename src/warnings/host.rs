//! The hosts: clocks, heat, memory nodes, swapping, links.

use super::thresholds::{CLOCK_LOSS_MAX, LINK_MAX, SWAPPED_MAX};
use super::{Said, percent};
use crate::summary::{Conditions, HostState, Summary};

pub(super) fn look(step: &Summary, said: &mut Said) {
    let Some(conditions) = &step.conditions else { return };
    let client = if step.client.same_host { "the host" } else { "the client's host" };
    for (whose, state) in
        [(client, &conditions.client_host), ("the server's host", &conditions.server_host)]
    {
        if let Some(state) = state {
            clocks(whose, state, said);
            swapping(whose, state, said);
            links(whose, state, said);
            // The server's process is known on its own host only.
            memory_nodes(step, state, said);
        }
    }
    frequency(client, conditions, said);
}

fn clocks(whose: &str, state: &HostState, said: &mut Said) {
    let policies: u32 = state.governors.values().sum();
    let others: Vec<String> = state
        .governors
        .iter()
        .filter(|(name, _)| *name != "performance")
        .map(|(name, count)| format!("{name} ({count} of {policies})"))
        .collect();
    if !others.is_empty() {
        let list = others.join(", ");
        said.warn("cpu_governor", format!("the frequency governor of {whose} is {list}"));
    }
    if let Some(times) = state.throttled.filter(|times| *times > 0) {
        let message = format!(
            "heat slowed cores of {whose} down, {times} times over the step, its warm-up included"
        );
        said.warn("cpu_throttled", message);
    }
}

/// The window's readings are all under load, so that an idle core's clock does not count.
fn frequency(whose: &str, conditions: &Conditions, said: &mut Said) {
    let mut clocks = conditions.window.iter().filter_map(|sample| sample.client_mhz);
    let (Some(first), Some(last)) = (clocks.next(), clocks.next_back()) else { return };
    if last < first * (1.0 - CLOCK_LOSS_MAX) {
        said.warn(
            "cpu_frequency",
            format!("the clock of {whose} fell from {first:.0} to {last:.0} MHz in the window"),
        );
    }
}

fn swapping(whose: &str, state: &HostState, said: &mut Said) {
    if let Some(pages) = state.swapped_pages.filter(|pages| *pages > SWAPPED_MAX) {
        said.warn("swapping", format!("{whose} swapped {pages} pages"));
    }
}

fn links(whose: &str, state: &HostState, said: &mut Said) {
    if state.covered_s <= 0.0 {
        return;
    }
    for link in &state.links {
        let bytes = link.rx_bytes.max(link.tx_bytes) as f64;
        let used = bytes * 8.0 / 1e6 / state.covered_s / link.mbit_per_s as f64;
        if used >= LINK_MAX {
            let (name, speed) = (&link.name, link.mbit_per_s);
            let used = percent(used);
            said.warn(
                "network_full",
                format!(
                    "{name} of {whose} was {used} used over the step, its warm-up included \
                     ({speed} Mbit/s)"
                ),
            );
        }
    }
}

fn memory_nodes(step: &Summary, state: &HostState, said: &mut Said) {
    let Some(nodes) = state.server_numa_nodes.filter(|nodes| *nodes > 1) else { return };
    let interleaved = step.server.variables.get("innodb_numa_interleave");
    if interleaved.is_none_or(|value| value == "OFF") {
        said.warn(
            "numa_unbound",
            format!(
                "the server may use {nodes} memory nodes and is neither bound to one nor \
                 interleaved: another start may place its memory otherwise"
            ),
        );
    }
}
