//! What a number is worth: a pure function of a step's summary (docs/verdicts.md).

use super::thresholds::{
    CORES_FULL, DESCHEDULED, OF_CEILING, OTHER_LOAD, OTHERS_MOST, PROBES_MIN, STEAL, THREAD_BUSY,
    THREAD_IDLE, THROTTLED, TURN_DELAY, WAKING_US,
};
use crate::summary::{Reason, Share, Summary, ThreadShare, Verdict, VerdictKind};
use crate::terms::Value::{Micros, Number, Share as Part};
use crate::terms::{Code, Finding, finding};

/// Warnings that say that the level was not one.
const UNSTEADY: [Code; 2] = [Code::Drift, Code::LevelChange];

/// Judges a step; None where its client did not look at itself.
pub(crate) fn verdict(step: &Summary) -> Option<Verdict> {
    let share = step.client.share.as_ref()?;
    let mut found = Found::default();
    let others = full_of_others(step, share);
    if others {
        found.others(share);
    } else {
        found.shared(step, share);
    }
    found.threads(step, share);
    found.turns(step, share);
    found.ceiling(step, share);
    found.throttled(step, share);
    if !others {
        found.others(share);
    }
    found.on_the_server(step);
    found.waits(step, share);
    let mut found = found.0;
    let unsteady = step.warnings.iter().filter(|w| UNSTEADY.iter().any(|code| w.is(*code)));
    found.extend(unsteady.map(|warning| {
        let (code, message) = (warning.code.clone(), warning.message.clone());
        (VerdictKind::Noisy, Reason { code, message })
    }));
    // Stable: of one weight they stay in this order.
    found.sort_by_key(|(kind, _)| std::cmp::Reverse(*kind));
    Some(Verdict {
        kind: found.first().map_or(VerdictKind::Ok, |(kind, _)| *kind),
        reasons: found.into_iter().map(|(_, reason)| reason).collect(),
    })
}

#[derive(Default)]
struct Found(Vec<(VerdictKind, Reason)>);

impl Found {
    fn add(&mut self, kind: VerdictKind, finding: &Finding) {
        let (code, message) = (finding.code.name().to_owned(), finding.to_string());
        self.0.push((kind, Reason { code, message }));
    }

    fn shared(&mut self, step: &Summary, share: &Share) {
        let busy = share.host_busy.filter(|busy| step.client.same_host && *busy > CORES_FULL);
        if let Some(busy) = busy {
            let cores = share.host_cores.map_or_else(String::new, |cores| format!("{cores} "));
            self.add(VerdictKind::SharedHost, &finding!(CoresFull, cores, Part(busy)));
        }
    }

    fn threads(&mut self, step: &Summary, share: &Share) {
        let busiest = busiest(step, share);
        if busiest > THREAD_BUSY {
            let found = finding!(ThreadBusy, Part(busiest), Part(THREAD_BUSY));
            self.add(VerdictKind::ClientBound, &found);
        }
    }

    /// Late turns are the client's doing, unless its threads waited for a core that others had, did
    /// too little for it, or somebody else explains them.
    fn turns(&mut self, step: &Summary, share: &Share) {
        let turns = &share.turns;
        let tail = turns.tail_percentile.zip(turns.turn_delay_tail_us);
        let service = step.latency.service.p50_us.filter(|service| *service > 0.0);
        let Some(((percentile, late), service)) = tail.zip(service) else { return };
        let limit = service * TURN_DELAY;
        if turns.probes < PROBES_MIN || late <= limit {
            return;
        }
        let own = turns.own_delay_tail_us.is_none_or(|own| own > limit);
        let others = if own {
            others_doing(step, share, percentile, limit)
        } else {
            Some(", which waited for a core".to_owned())
        };
        let (kind, why) = match others {
            Some(why) if !oversubscribed(step, share) => (VerdictKind::Noisy, why),
            _ => (VerdictKind::ClientBound, String::new()),
        };
        // Of the time and not of the ops, as the percentiles of latency are.
        let beyond = 100 - percentile.min(100);
        let (late, limit) = (Micros(late), Micros(limit));
        self.add(kind, &finding!(TurnDelay, beyond, late, why, limit, Part(TURN_DELAY)));
    }

    fn ceiling(&mut self, step: &Summary, share: &Share) {
        let Some(ceiling) = share.ceiling.as_ref().filter(|c| c.qps > 0.0) else { return };
        let (qps, most) = (Number(step.totals.qps, 0), Number(ceiling.qps, 0));
        let part = step.totals.qps / ceiling.qps;
        if part > OF_CEILING {
            let found = finding!(NearCeiling, qps, Part(part), most, Part(OF_CEILING));
            self.add(VerdictKind::ClientBound, &found);
        }
    }

    fn throttled(&mut self, step: &Summary, share: &Share) {
        let Some(part) = share.throttled_s.map(|s| s / step.measured_s) else { return };
        if part.is_finite() && part > THROTTLED {
            self.add(VerdictKind::ClientBound, &finding!(Throttled, Part(part)));
        }
    }

    fn others(&mut self, share: &Share) {
        for found in taken(share.other_load, share.steal, "this host") {
            self.add(VerdictKind::Noisy, &found);
        }
    }

    /// Looks at a server's host that is not this one, where that could be looked at.
    fn on_the_server(&mut self, step: &Summary) {
        let probed = step.server.probed.as_ref().filter(|_| !step.client.same_host);
        let Some((probed, host)) = probed.and_then(|probed| Some((probed, probed.host.as_ref()?)))
        else {
            return;
        };
        let all_s = host.user_s + host.sys_s + host.iowait_s + host.idle_s + host.steal_s;
        if all_s <= 0.0 {
            return;
        }
        let programs_s = host.irq_s.map(|irq_s| host.user_s + host.sys_s - irq_s);
        let other = programs_s.zip(probed.process.as_ref());
        let other = other.map(|(all, server)| (all - server.user_s - server.sys_s) / all_s);
        for found in taken(other, Some(host.steal_s / all_s), "the server's host") {
            self.add(VerdictKind::Noisy, &found);
        }
    }

    fn waits(&mut self, step: &Summary, share: &Share) {
        let part = |thread: &ThreadShare| {
            thread.descheduled_s.filter(|_| thread.wall_s > 0.0).map(|s| s / thread.wall_s)
        };
        let most = share.threads.iter().filter_map(part).fold(0.0, f64::max);
        if most > DESCHEDULED {
            // More threads than cores wait for each other.
            let own = oversubscribed(step, share);
            let kind = if own { VerdictKind::ClientBound } else { VerdictKind::Noisy };
            self.add(kind, &finding!(Descheduled, Part(most)));
        }
    }
}

/// Finds what others than client and server took of a host's cores, where it is too much.
pub(super) fn taken(other: Option<f64>, steal: Option<f64>, whose: &str) -> Vec<Finding> {
    let other = other.filter(|other| *other > OTHER_LOAD);
    let steal = steal.filter(|steal| *steal > STEAL);
    let other = other.map(|part| finding!(OtherLoad, Part(part), whose));
    other.into_iter().chain(steal.map(|part| finding!(Steal, Part(part), whose))).collect()
}

/// Who made the turns beyond a percentile late, if the client's threads did not wait for a core:
/// the hypervisor, where only these are late and it took as large a part of a core as they are of
/// all; other programs that had most of the cores; or nobody, where the threads were idle.
fn others_doing(step: &Summary, share: &Share, percentile: u32, limit_us: f64) -> Option<String> {
    let median = share.turns.turn_delay_p50_us;
    let mostly = |most_us: f64| median.is_some_and(|median| median <= most_us);
    let cores = f64::from(share.host_cores.unwrap_or(1));
    let beyond = 1.0 - f64::from(percentile) / 100.0;
    if mostly(limit_us) && share.steal.is_some_and(|steal| steal * cores >= beyond) {
        return Some(", whose core was stolen".to_owned());
    }
    let idle = busiest(step, share) <= THREAD_IDLE && mostly(limit_us.max(WAKING_US));
    let other = share.other_load.filter(|other| *other > OTHER_LOAD);
    let using = other
        .map(|other| format!(", with other programs using {} of this host's cores", Part(other)));
    let most = others_had_most(share);
    let idly = if idle { ", whose threads were idle" } else { "" };
    (idle || most).then(|| format!("{idly}{}", using.unwrap_or_default()))
}

/// Whether nobody can tell what the client would have done with the cores.
fn others_had_most(share: &Share) -> bool {
    share.other_load.is_some_and(|other| other > OTHERS_MOST)
}

/// Whether the cores would not be full without other programs, which have most of them. Known
/// only where the server can be told from these.
fn full_of_others(step: &Summary, share: &Share) -> bool {
    let known = share.host_busy.zip(share.other_load).zip(share.server_cpu_s);
    let Some(((busy, other), _)) = known.filter(|_| step.client.same_host) else { return false };
    let ours = busy - other;
    busy > CORES_FULL && ours <= CORES_FULL && ours < other
}

/// Busy part of the busiest engine thread, without waiting for a core.
fn busiest(step: &Summary, share: &Share) -> f64 {
    let own = |thread: &ThreadShare| {
        // In an open loop it is without that already.
        let closed = step.plan.rate.is_none() && thread.wall_s > 0.0;
        let part = |s: Option<f64>| s.filter(|_| closed).map_or(0.0, |s| s / thread.wall_s);
        (thread.busy - part(thread.descheduled_s)).max(part(thread.cpu_s))
    };
    share.threads.iter().map(own).fold(0.0, f64::max)
}

/// Whether the threads waited for each other: more than cores, with work to do.
fn oversubscribed(step: &Summary, share: &Share) -> bool {
    step.plan.engine_threads > step.client.cores.max(1)
        && busiest(step, share) > THREAD_IDLE
        && !others_had_most(share)
}

#[cfg(test)]
mod tests;
