//! The engine threads of a step: how many, their start and their end.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::thread::{self, Order};
use crate::error::{Error, Result};
use crate::plan::{Plan, limits};

/// Engine threads of a step.
pub(crate) fn engine_threads(plan: &Plan, clients: u32) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = plan.engine_threads.map_or(cores, |n| n as usize);
    wanted.clamp(1, clients.max(1) as usize)
}

pub(super) fn spawn(order: &Order, threads: usize, clients: u32) -> Result<Vec<JoinHandle<()>>> {
    let mut handles = Vec::with_capacity(threads);
    for index in 0..threads {
        let order_here = order.clone();
        let share: Vec<u32> = (index as u32..clients).step_by(threads).collect();
        let spawned = std::thread::Builder::new()
            .name(format!("engine-{index}"))
            .spawn(move || thread::run(&order_here, index, &share));
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

pub(super) async fn join(handles: Vec<JoinHandle<()>>) {
    let deadline = Instant::now() + limits::COURTESY;
    for handle in handles {
        while !handle.is_finished() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if handle.is_finished() {
            // A panic was reported by the missing Done.
            let _ = handle.join();
        }
    }
}
