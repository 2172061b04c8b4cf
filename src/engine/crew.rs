//! The operating system threads of a step: how many, started, and waited for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::job::queues;
use super::thread::{self, News, Order};
use crate::error::{Error, Result};
use crate::plan::{Plan, Spread, limits};
use crate::summary::in_queues;

/// Engine threads of a step.
pub(crate) fn engine_threads(plan: &Plan, clients: u32) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = plan.engine_threads.map_or(cores, |n| n as usize);
    wanted.clamp(1, clients.max(1) as usize)
}

/// In how many queues the arrivals of an open loop come, where they are several: its response
/// times are those of that many queues, each with its part of the clients.
pub(crate) fn queues_told(plan: &Plan, spread: Spread, tables: u32) -> Option<String> {
    if plan.rates.is_empty() {
        return None;
    }
    let of = |clients: &u32| queues(engine_threads(plan, *clients), spread, tables, *clients);
    let all: Vec<u32> = plan.clients.iter().map(of).collect();
    let (least, most) = all.iter().min().zip(all.iter().max()).filter(|(_, most)| **most > 1)?;
    let range = if least < most { format!("{least} to ") } else { String::new() };
    Some(format!("open loop: arrivals in {range}{}", in_queues(*most, spread)))
}

pub(super) fn spawn(order: &Order, threads: usize, clients: u32) -> Result<Vec<JoinHandle<()>>> {
    let mut handles = Vec::with_capacity(threads);
    for index in 0..threads {
        let order_here = order.clone();
        let share: Vec<u32> = (index as u32..clients).step_by(threads).collect();
        let spawned =
            std::thread::Builder::new().name(format!("engine-{index}")).spawn(move || {
                let news = order_here.news.clone();
                let run = AssertUnwindSafe(|| thread::run(&order_here, index, &share));
                if catch_unwind(run).is_err() {
                    // Else the step would wait for its Done.
                    let _ = news.send(News::Broken(broken()));
                }
            });
        match spawned {
            Ok(handle) => handles.push(handle),
            Err(e) => {
                return Err(Error::failed(format!("cannot start engine thread {index}: {e}"))
                    .hint("raise the limit on processes (ulimit -u), or use --engine-threads 1"));
            }
        }
    }
    Ok(handles)
}

pub(super) fn broken() -> Error {
    Error::failed("an engine thread ended without a word; please report this")
}

pub(super) async fn join(handles: Vec<JoinHandle<()>>) {
    let deadline = Instant::now() + limits::COURTESY;
    for handle in handles {
        while !handle.is_finished() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if handle.is_finished() {
            // A panic is told already.
            let _ = handle.join();
        }
    }
}
