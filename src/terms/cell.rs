//! A cell of a table: so many clients, and the rate of an open loop.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

/// Ops a second over all clients, above 0; ordered and hashed as a number.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Rate(pub f64);

/// What a step is measured at, within one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cell {
    pub clients: u32,
    /// None in a closed loop.
    pub rate: Option<Rate>,
}

impl Cell {
    pub(crate) fn new(clients: u32, rate: Option<f64>) -> Cell {
        Cell { clients, rate: rate.map(Rate) }
    }

    pub(crate) fn per_s(&self) -> Option<f64> {
        self.rate.map(|rate| rate.0)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.rate.is_some()
    }
}

impl Ord for Cell {
    /// Closed loops come first, then fewer clients, then lower rates.
    fn cmp(&self, other: &Cell) -> Ordering {
        let key = |cell: &Cell| (cell.is_open(), cell.clients, cell.rate);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Cell {
    fn partial_cmp(&self, other: &Cell) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate {
            None => write!(f, "{}", self.clients),
            Some(rate) => write!(f, "{}@{rate}", self.clients),
        }
    }
}

impl Ord for Rate {
    fn cmp(&self, other: &Rate) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Rate {
    fn partial_cmp(&self, other: &Rate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rate {
    fn eq(&self, other: &Rate) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Rate {}

impl Hash for Rate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_loops_come_first_then_clients_then_rates() {
        let cells = [(8, None), (16, None), (2, Some(10.0)), (2, Some(100.5)), (4, Some(1.0))];
        let cells = cells.map(|(clients, rate)| Cell::new(clients, rate));
        assert!(cells.is_sorted());
        assert_eq!(cells.map(|cell| cell.to_string()), ["8", "16", "2@10", "2@100.5", "4@1"]);
    }
}
