//! What the threads of a step counted, added up.

use std::time::Duration;

use super::Run;
use super::errors::Errors;
use super::job::Tables;
use super::ledger::Account;
use super::mishap::Lost;
use super::pace;
use super::thread::End;
use crate::observe::cores::Used;
use crate::observe::timeline::Timeline;
use crate::summary::Outcome;

/// A run of which only this is known; what was read at the edges of the window is not in it.
pub(super) fn run(
    ends: Vec<End>,
    tables: Tables,
    timeline: Timeline,
    started_at: jiff::Timestamp,
) -> Run {
    let mut accounts = vec![Account::default(); tables.count as usize];
    let mut errors = Errors::default();
    let (mut ops_by_client, mut threads, mut abandoned) = (Vec::new(), Vec::new(), 0);
    let (mut in_doubt, mut reconnects, mut lost) = (0, 0, Lost::default());
    let mut paced: Option<pace::Counts> = None;
    for end in ends {
        for (sum, account) in accounts.iter_mut().zip(&end.accounts) {
            sum.merge(account);
        }
        errors.merge(end.errors);
        ops_by_client.extend(end.ops_by_client);
        threads.push(end.seen);
        abandoned += end.abandoned;
        in_doubt += end.in_doubt;
        lost = lost + end.lost;
        reconnects += end.reconnects;
        if let Some(counts) = end.paced {
            abandoned += counts.unissued;
            paced.get_or_insert_default().merge(&counts);
        }
    }
    Run {
        outcome: Outcome::Completed,
        error: None,
        started_at,
        measured_s: 0.0,
        outages: Vec::new(),
        timeline,
        ops_by_client,
        ops_by_table: accounts.iter().map(|a| a.ops).collect(),
        ledger: (0..tables.count).zip(&accounts).map(|(t, a)| a.entry(tables.schema, t)).collect(),
        errors: errors.into_counts(),
        abandoned,
        in_doubt,
        lost,
        reconnects,
        paced,
        threads,
        cores: Used::default(),
        user: Duration::ZERO,
        sys: Duration::ZERO,
        traffic: None,
        status: None,
        changed: Vec::new(),
        probed: None,
    }
}
