//! The verdict on a number: a pure function of a step's summary (docs/reference/verdicts.md).

use std::cmp::Reverse;

use super::thresholds::{
    CORES_FULL, DESCHEDULED, OF_CEILING, OTHER_LOAD, OTHERS_MOST, PROBES_MIN, STEAL, STOPPED_S,
    THREAD_BUSY, THREAD_IDLE, THROTTLED, TURN_DELAY, WAKING_US,
};
use crate::summary::VerdictKind::{ClientBound, Noisy, SharedHost};
use crate::summary::{Share, Summary, ThreadShare, Verdict, VerdictKind, Warning};
use crate::terms::{Code, Finding, finding, joined};

const UNSTEADY: [Code; 2] = [Code::Drift, Code::LevelChange];

type Found = (VerdictKind, Finding);

/// What a client's own share says against a number; last, that its threads waited for a core.
type OfClient = (Vec<Found>, Option<Found>);

/// Judges a step of which this was found; None where its client did not look at itself.
pub(super) fn verdict(step: &Summary, findings: &[Finding]) -> Option<Verdict> {
    Some(complete(step, of_client(step, "this host")?, findings))
}

/// Judges a step with clients on several hosts: each host by its own share, the step by the worst of them.
pub(super) fn of_hosts(
    step: &Summary,
    findings: &[Finding],
) -> (Option<Verdict>, Vec<Option<VerdictKind>>) {
    let mut part = step.clone();
    let own = step.hosts.iter().map(|host| {
        let (client, plan) = (&mut part.client, &mut part.plan);
        client.share.clone_from(&host.share);
        (client.same_host, client.cores) = (host.same_host, host.cores);
        plan.engine_threads = host.threads;
        of_client(&part, &host.name)
    });
    let own: Vec<Option<OfClient>> = own.collect();
    let kinds = own.iter().map(|own| own.as_ref().map(worst)).collect();
    let own = own.into_iter().zip(&step.hosts).filter_map(|(own, host)| Some((own?, host)));
    // Of several that are equally bad the first.
    let first = |one: (OfClient, _), other: (OfClient, _)| {
        if worst(&other.0) > worst(&one.0) { other } else { one }
    };
    let verdict = own.reduce(first).map(|(own, host)| {
        let kind = worst(&own);
        let mut verdict = complete(step, own, findings);
        if kind != VerdictKind::Ok && kind == verdict.kind && step.hosts.len() > 1 {
            // Behind the reason that a short line shows.
            verdict.reasons.insert(1, finding!(WorstHost, host.name.as_str()).into());
        }
        verdict
    });
    (verdict, kinds)
}

fn worst((found, waits): &OfClient) -> VerdictKind {
    found.iter().chain(waits).map(|(kind, _)| *kind).max().unwrap_or(VerdictKind::Ok)
}

fn of_client(step: &Summary, whose: &str) -> Option<OfClient> {
    let share = step.client.share.as_ref()?;
    let others = taken(share.other_load, share.steal, whose).into_iter().map(|f| (Noisy, f));
    let full_of_others = full_of_others(step, share);
    let mut found: Vec<Found> = others.clone().filter(|_| full_of_others).collect();
    found.extend(shared(step, share).filter(|_| !full_of_others));
    let own = [busy(step, share), turns(step, share), near_ceiling(step, share), held(step, share)];
    found.extend(own.into_iter().flatten());
    found.extend(others.filter(|_| !full_of_others));
    Some((found, waits(step, share)))
}

fn complete(step: &Summary, (mut found, waits): OfClient, findings: &[Finding]) -> Verdict {
    found.extend(on_the_server(step).into_iter().flatten().map(|f| (Noisy, f)));
    found.extend(waits);
    let is_unsteady = |found: &&Finding| found.code().is_some_and(|code| UNSTEADY.contains(&code));
    let unsteady = findings.iter().filter(is_unsteady);
    found.extend(unsteady.map(|finding| (Noisy, finding.clone())));
    // Stable: of one weight they stay in this order.
    found.sort_by_key(|(kind, _)| Reverse(*kind));
    Verdict {
        kind: found.first().map_or(VerdictKind::Ok, |(kind, _)| *kind),
        reasons: found.into_iter().map(|(_, reason)| Warning::from(reason)).collect(),
    }
}

fn shared(step: &Summary, share: &Share) -> Option<Found> {
    let busy = share.host_busy.filter(|busy| step.client.same_host && *busy > CORES_FULL)?;
    Some((SharedHost, finding!(CoresFull, busy)))
}

fn busy(step: &Summary, share: &Share) -> Option<Found> {
    let busiest = Some(busiest(step, share)).filter(|busiest| *busiest > THREAD_BUSY)?;
    Some((ClientBound, finding!(ThreadBusy, busiest, THREAD_BUSY)))
}

/// Late turns are the client's doing, unless its threads waited for a core that others had, did
/// too little for it, or somebody else explains them.
fn turns(step: &Summary, share: &Share) -> Option<Found> {
    let turns = &share.turns;
    let (percentile, late) = turns.tail_percentile.zip(turns.turn_delay_tail_us)?;
    let limit = step.latency.service.p50_us.filter(|service| *service > 0.0)? * TURN_DELAY;
    if turns.probes < PROBES_MIN || late <= limit {
        return None;
    }
    let waited = turns.own_delay_tail_us.is_some_and(|own| own <= limit);
    let waited = waited.then(|| "it waited for a core".to_owned());
    let stopped = || {
        let s = stopped_s(share)?;
        Some(format!("its threads did not run for {s:.1} s: it was stopped, or its machine paused"))
    };
    let others = waited.or_else(stopped).or_else(|| others_doing(step, share, percentile, limit));
    let (kind, why) = match others.filter(|_| !oversubscribed(step, share)) {
        Some(why) => (Noisy, why),
        None => (ClientBound, "it had too much to do".to_owned()),
    };
    // A percentile of the time and not of the operations, unlike those of latency.
    let part = f64::from(100 - percentile.min(100)) / 100.0;
    Some((kind, finding!(TurnDelay, part, late, limit, TURN_DELAY, why)))
}

fn near_ceiling(step: &Summary, share: &Share) -> Option<Found> {
    let ceiling = share.ceiling.as_ref().filter(|c| c.qps > 0.0)?;
    let qps = step.qps_of_all();
    let part = Some(qps / ceiling.qps).filter(|part| *part > OF_CEILING)?;
    Some((ClientBound, finding!(NearCeiling, qps, part, ceiling.qps, OF_CEILING)))
}

fn held(step: &Summary, share: &Share) -> Option<Found> {
    let part = share.throttled_s.map(|s| s / step.measured_s);
    let part = part.filter(|part| part.is_finite() && *part > THROTTLED)?;
    // The time of several cores may be longer than the window.
    Some((ClientBound, finding!(Throttled, part.min(1.0))))
}

/// Looks at a server's host that is not this one, where that could be looked at.
fn on_the_server(step: &Summary) -> Option<Vec<Finding>> {
    let (other, steal) = others_on_the_server(step)?;
    Some(taken(other, Some(steal), "the server's host"))
}

/// Returns the parts of the cores of a server's host of its own that other programs and the hypervisor had.
fn others_on_the_server(step: &Summary) -> Option<(Option<f64>, f64)> {
    let probed = step.server.probed.as_ref().filter(|_| !step.client.same_host)?;
    let host = probed.host.as_ref()?;
    let all_s = host.user_s + host.sys_s + host.iowait_s + host.idle_s + host.steal_s;
    if all_s <= 0.0 {
        return None;
    }
    let programs_s = host.irq_s.map(|irq_s| host.user_s + host.sys_s - irq_s);
    let other = programs_s.zip(probed.process.as_ref());
    let other = other.map(|(all, server)| (all - server.user_s - server.sys_s) / all_s);
    Some((other, host.steal_s / all_s))
}

/// Returns the part of a host's cores that other programs and the hypervisor had, of the client's and the server's
/// hosts the largest; None where it is known of none.
pub(crate) fn used_by_others(step: &Summary) -> Option<f64> {
    let hosts = step.hosts.iter().filter_map(|host| host.share.as_ref());
    let of_clients =
        step.client.share.iter().chain(hosts).map(|share| (share.other_load, share.steal));
    let of_server = others_on_the_server(step).map(|(other, steal)| (other, Some(steal)));
    let known = of_clients.chain(of_server).filter_map(|(other, steal)| match (other, steal) {
        (None, None) => None,
        (other, steal) => Some(other.unwrap_or(0.0).max(0.0) + steal.unwrap_or(0.0)),
    });
    known.reduce(f64::max)
}

fn waits(step: &Summary, share: &Share) -> Option<Found> {
    let part = |thread: &ThreadShare| {
        thread.descheduled_s.filter(|_| thread.wall_s > 0.0).map(|s| s / thread.wall_s)
    };
    let most = share.threads.iter().filter_map(part).fold(0.0, f64::max);
    // More threads than cores wait for each other.
    let kind = if oversubscribed(step, share) { ClientBound } else { Noisy };
    (most > DESCHEDULED).then(|| (kind, finding!(Descheduled, most)))
}

pub(super) fn taken(other: Option<f64>, steal: Option<f64>, whose: &str) -> Vec<Finding> {
    let other = other.filter(|other| *other > OTHER_LOAD);
    let other = other.map(|part| finding!(OtherLoad, part, whose));
    let steal = steal.filter(|steal| *steal > STEAL).map(|part| finding!(Steal, part, whose));
    other.into_iter().chain(steal).collect()
}

/// Returns for how long no thread ran, though none waited for a core as long, no quota held it back, and the
/// rest of the time is enough for the CPU that it used.
fn stopped_s(share: &Share) -> Option<f64> {
    let gap = |thread: &ThreadShare| {
        // Without a quota nothing is throttled.
        let explained = thread.descheduled_s? + share.throttled_s.unwrap_or(0.0);
        let (gap, cpu_s) = (thread.turns.turn_delay_max_us? / 1e6, thread.cpu_s?);
        Some(gap).filter(|gap| explained < gap / 2.0 && cpu_s + gap <= thread.wall_s)
    };
    let gaps: Vec<f64> = share.threads.iter().map(gap).collect::<Option<_>>()?;
    gaps.into_iter().reduce(f64::min).filter(|gap| *gap >= STOPPED_S)
}

/// Returns who made the turns beyond a percentile late, if the client's threads did not wait for a core:
/// the hypervisor, where only these are late and it took as large a part of a core as they are of
/// all; other programs that had most of the cores; or nobody, where the threads were idle.
fn others_doing(step: &Summary, share: &Share, percentile: u32, limit_us: f64) -> Option<String> {
    let median = share.turns.turn_delay_p50_us;
    let mostly = |most_us: f64| median.is_some_and(|median| median <= most_us);
    let cores = f64::from(share.host_cores.unwrap_or(1));
    let beyond = 1.0 - f64::from(percentile) / 100.0;
    if mostly(limit_us) && share.steal.is_some_and(|steal| steal * cores >= beyond) {
        return Some("the hypervisor had its core".to_owned());
    }
    let idle = busiest(step, share) <= THREAD_IDLE && mostly(limit_us.max(WAKING_US));
    let idly = idle.then(|| "its threads were idle".to_owned());
    let others_used = share.other_load.is_some_and(|other| other > OTHER_LOAD);
    let used = others_used.then(|| "other programs used the cores".to_owned());
    joined([idly, used], ", ").filter(|_| idle || others_had_most(share))
}

/// Returns true if it is unknown what the client would have done with the cores.
fn others_had_most(share: &Share) -> bool {
    share.other_load.is_some_and(|other| other > OTHERS_MOST)
}

/// Known only where the server can be told from other programs, which have most of the cores.
fn full_of_others(step: &Summary, share: &Share) -> bool {
    let known = share.host_busy.zip(share.other_load).zip(share.server_cpu_s);
    known.filter(|_| step.client.same_host).is_some_and(|((busy, other), _)| {
        let ours = busy - other;
        busy > CORES_FULL && ours <= CORES_FULL && ours < other
    })
}

/// Returns the busy part of the busiest engine thread, without waiting for a core.
fn busiest(step: &Summary, share: &Share) -> f64 {
    let spins = spins(step);
    let own = |thread: &ThreadShare| {
        // Where threads spin, it is without that already.
        let closed = !spins && thread.wall_s > 0.0;
        let part = |s: Option<f64>| s.filter(|_| closed).map_or(0.0, |s| s / thread.wall_s);
        (thread.busy - part(thread.descheduled_s)).max(part(thread.cpu_s))
    };
    share.threads.iter().map(own).fold(0.0, f64::max)
}

/// Returns true if threads look for work before an instant, which is no work: an arrival, or a pause's end.
fn spins(step: &Summary) -> bool {
    let is_timed = |rate: Option<f64>, think_s: Option<f64>| rate.is_some() || think_s.is_some();
    is_timed(step.plan.rate, step.plan.think_s)
        || step.groups.iter().any(|group| is_timed(group.rate, group.think_s))
}

/// Returns true if the threads waited for each other: more than cores, with work to do.
fn oversubscribed(step: &Summary, share: &Share) -> bool {
    step.plan.engine_threads > step.client.cores.max(1)
        && busiest(step, share) > THREAD_IDLE
        && !others_had_most(share)
}

#[cfg(test)]
mod tests;
