//! Whether a number is the server's: a pure function of a step's summary (docs/verdicts.md).

use serde::{Deserialize, Serialize};

use super::{Share, Summary};

/// From where on something is a reason. docs/verdicts.md says why so much.
pub(crate) mod thresholds {
    /// Turn delay that the latest hundredth of the time exceeds (or the smallest part that is
    /// known), of the median service time.
    pub(crate) const TURN_DELAY: f64 = 0.05;
    /// Fewer probes than this have no percentile from 80 on that is known.
    pub(crate) const PROBES_MIN: u64 = 50;
    /// Busy part of the busiest engine thread up to which late turns are not its own doing.
    pub(crate) const THREAD_IDLE: f64 = 0.20;
    /// Median turn delay, microseconds, up to which that is the kernel's waking an idle thread;
    /// one that is later has been stopped.
    pub(crate) const WAKING_US: f64 = 1000.0;
    /// Of the host's cores, used by others, from which on late turns are theirs.
    pub(crate) const OTHERS_MOST: f64 = 0.50;
    /// Busy part of an engine thread.
    pub(crate) const THREAD_BUSY: f64 = 0.80;
    /// Of what the calibration says that this host can generate.
    pub(crate) const OF_CEILING: f64 = 0.60;
    /// Of the window, held back by a control group.
    pub(crate) const THROTTLED: f64 = 0.01;
    /// Used part of the cores that client and server share.
    pub(crate) const CORES_FULL: f64 = 0.80;
    /// Of the host's cores, used by neither client nor server.
    pub(crate) const OTHER_LOAD: f64 = 0.10;
    /// Of the host's cores, given to others by the hypervisor.
    pub(crate) const STEAL: f64 = 0.02;
    /// Of the window, an engine thread waiting for a core.
    pub(crate) const DESCHEDULED: f64 = 0.05;
}

/// Reasons that a sentence tells.
const TOLD_MAX: usize = 2;
/// Warnings that say that the level was not one.
const UNSTEADY: [&str; 2] = ["drift", "level_change"];

/// What a number is worth. Later ones outweigh earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VerdictKind {
    /// Nothing speaks against its being the server's.
    Ok,
    /// Something else on the client's host, or an unsteady level, is in it.
    Noisy,
    /// The client is in it.
    ClientBound,
    /// Client and server shared cores that were full.
    SharedHost,
}

impl VerdictKind {
    /// As in the summary.
    pub fn name(self) -> &'static str {
        match self {
            VerdictKind::Ok => "ok",
            VerdictKind::Noisy => "noisy",
            VerdictKind::ClientBound => "client-bound",
            VerdictKind::SharedHost => "shared-host",
        }
    }
}

/// What a step's number is worth, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verdict {
    /// The weightiest of what the reasons say.
    pub kind: VerdictKind,
    /// All of them, the weightiest first; none where it is ok.
    pub reasons: Vec<Reason>,
}

/// Why a number is not simply the server's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Reason {
    /// A stable short name, such as `turn_delay`.
    pub code: String,
    /// A clause with the figure and its limit.
    pub message: String,
}

impl Verdict {
    /// The kind and its reasons in a line: the weightiest ones, and the codes of the others.
    pub(crate) fn sentence(&self) -> String {
        let (told, others) = self.reasons.split_at(self.reasons.len().min(TOLD_MAX));
        let mut told: Vec<&str> = told.iter().map(|reason| reason.message.as_str()).collect();
        let codes: Vec<&str> = others.iter().map(|reason| reason.code.as_str()).collect();
        let more = format!("also {}", codes.join(", "));
        told.extend((!codes.is_empty()).then_some(more.as_str()));
        match told.as_slice() {
            [] => self.kind.name().to_owned(),
            told => format!("{}: {}", self.kind.name(), told.join("; ")),
        }
    }

    /// The verdict on a step; None where its client did not look at itself.
    pub(crate) fn of(step: &Summary) -> Option<Verdict> {
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
        for warning in step.warnings.iter().filter(|w| UNSTEADY.contains(&w.code.as_str())) {
            found.add(VerdictKind::Noisy, &warning.code, warning.message.clone());
        }
        let mut found = found.0;
        // Stable: of one weight they stay in this order.
        found.sort_by_key(|(kind, _)| std::cmp::Reverse(*kind));
        Some(Verdict {
            kind: found.first().map_or(VerdictKind::Ok, |(kind, _)| *kind),
            reasons: found.into_iter().map(|(_, reason)| reason).collect(),
        })
    }
}

#[derive(Default)]
struct Found(Vec<(VerdictKind, Reason)>);

impl Found {
    fn add(&mut self, kind: VerdictKind, code: &str, message: String) {
        self.0.push((kind, Reason { code: code.to_owned(), message }));
    }

    fn shared(&mut self, step: &Summary, share: &Share) {
        let Some(busy) = share.host_busy.filter(|_| step.client.same_host) else { return };
        if busy > thresholds::CORES_FULL {
            let cores = share.host_cores.map_or_else(String::new, |cores| format!(" {cores}"));
            let message = format!(
                "client and server shared this host's{cores} cores, {} busy",
                percent(busy)
            );
            self.add(VerdictKind::SharedHost, "cores_full", message);
        }
    }

    fn threads(&mut self, step: &Summary, share: &Share) {
        let busiest = busiest(step, share);
        if busiest > thresholds::THREAD_BUSY {
            let message = format!(
                "an engine thread was busy {} of the time (limit {})",
                percent(busiest),
                percent(thresholds::THREAD_BUSY)
            );
            self.add(VerdictKind::ClientBound, "thread_busy", message);
        }
    }

    /// Late turns are the client's doing, unless its threads waited for a core that others had, did
    /// too little for it, or somebody else explains them.
    fn turns(&mut self, step: &Summary, share: &Share) {
        let turns = &share.turns;
        let tail = turns.tail_percentile.zip(turns.turn_delay_tail_us);
        let service = step.latency.service.p50_us.filter(|service| *service > 0.0);
        let Some(((percentile, late), service)) = tail.zip(service) else { return };
        let limit = service * thresholds::TURN_DELAY;
        if turns.probes < thresholds::PROBES_MIN || late <= limit {
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
        let message = format!(
            "for {} % of the time a socket that was ready waited {} or longer for the client{why} \
             (limit {}, {} of the median service time)",
            100 - percentile.min(100),
            time(late),
            time(limit),
            percent(thresholds::TURN_DELAY)
        );
        self.add(kind, "turn_delay", message);
    }

    fn ceiling(&mut self, step: &Summary, share: &Share) {
        let Some(ceiling) = share.ceiling.as_ref().filter(|c| c.qps > 0.0) else { return };
        let part = step.totals.qps / ceiling.qps;
        if part > thresholds::OF_CEILING {
            let message = format!(
                "{:.0} QPS are {} of the {:.0} that this host can generate with these threads \
                 (limit {})",
                step.totals.qps,
                percent(part),
                ceiling.qps,
                percent(thresholds::OF_CEILING)
            );
            self.add(VerdictKind::ClientBound, "near_ceiling", message);
        }
    }

    fn throttled(&mut self, step: &Summary, share: &Share) {
        let Some(part) = share.throttled_s.map(|s| s / step.measured_s) else { return };
        if part.is_finite() && part > thresholds::THROTTLED {
            let message = format!(
                "a control group's quota held the client back {} of the time",
                percent(part)
            );
            self.add(VerdictKind::ClientBound, "throttled", message);
        }
    }

    fn others(&mut self, share: &Share) {
        for (code, message) in taken(share.other_load, share.steal) {
            self.add(VerdictKind::Noisy, code, message);
        }
    }

    /// The same of a server's host that is not this one, where it was looked at.
    fn on_the_server(&mut self, step: &Summary) {
        let Some(probed) = step.server.probed.as_ref().filter(|_| !step.client.same_host) else {
            return;
        };
        let Some(host) = &probed.host else { return };
        let all_s = host.user_s + host.sys_s + host.iowait_s + host.idle_s + host.steal_s;
        if all_s <= 0.0 {
            return;
        }
        let programs_s = host.irq_s.map(|irq_s| host.user_s + host.sys_s - irq_s);
        if let Some((programs_s, server)) = programs_s.zip(probed.process.as_ref()) {
            let other = (programs_s - server.user_s - server.sys_s) / all_s;
            if other > thresholds::OTHER_LOAD {
                let message =
                    format!("other programs used {} of the server's host's cores", percent(other));
                self.add(VerdictKind::Noisy, "other_load", message);
            }
        }
        let steal = host.steal_s / all_s;
        if steal > thresholds::STEAL {
            let message = format!(
                "the hypervisor gave {} of the server's host's cores to others",
                percent(steal)
            );
            self.add(VerdictKind::Noisy, "steal", message);
        }
    }

    fn waits(&mut self, step: &Summary, share: &Share) {
        let part = |thread: &super::ThreadShare| {
            thread.descheduled_s.filter(|_| thread.wall_s > 0.0).map(|s| s / thread.wall_s)
        };
        let most = share.threads.iter().filter_map(part).fold(0.0, f64::max);
        if most > thresholds::DESCHEDULED {
            // More threads than cores wait for each other.
            let own = oversubscribed(step, share);
            let kind = if own { VerdictKind::ClientBound } else { VerdictKind::Noisy };
            let message =
                format!("an engine thread waited {} of the time for a core", percent(most));
            self.add(kind, "descheduled", message);
        }
    }
}

/// What others than client and server took of a host's cores, where it is too much: codes and
/// clauses.
pub(crate) fn taken(
    other_load: Option<f64>,
    steal: Option<f64>,
) -> impl Iterator<Item = (&'static str, String)> {
    let others = other_load.filter(|other| *other > thresholds::OTHER_LOAD);
    let others = others
        .map(|part| format!("other programs used {} of this host's cores", percent(part)))
        .map(|message| ("other_load", message));
    let stolen = steal.filter(|steal| *steal > thresholds::STEAL);
    let stolen = stolen
        .map(|part| format!("the hypervisor gave {} of this host's cores to others", percent(part)))
        .map(|message| ("steal", message));
    others.into_iter().chain(stolen)
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
    let idle = busiest(step, share) <= thresholds::THREAD_IDLE
        && mostly(limit_us.max(thresholds::WAKING_US));
    let other = share.other_load.filter(|other| *other > thresholds::OTHER_LOAD);
    let using = other.map(|other| {
        format!(", with other programs using {} of this host's cores", percent(other))
    });
    let most = others_had_most(share);
    let idly = if idle { ", whose threads were idle" } else { "" };
    (idle || most).then(|| format!("{idly}{}", using.unwrap_or_default()))
}

/// Whether nobody can tell what the client would have done with the cores.
fn others_had_most(share: &Share) -> bool {
    share.other_load.is_some_and(|other| other > thresholds::OTHERS_MOST)
}

/// Whether the cores would not be full without other programs, which have most of them. Known
/// only where the server can be told from these.
fn full_of_others(step: &Summary, share: &Share) -> bool {
    let known = share.host_busy.zip(share.other_load).zip(share.server_cpu_s);
    let Some(((busy, other), _)) = known.filter(|_| step.client.same_host) else { return false };
    let ours = busy - other;
    busy > thresholds::CORES_FULL && ours <= thresholds::CORES_FULL && ours < other
}

/// Busy part of the busiest engine thread, without waiting for a core.
fn busiest(step: &Summary, share: &Share) -> f64 {
    let own = |thread: &super::ThreadShare| {
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
        && busiest(step, share) > thresholds::THREAD_IDLE
        && !others_had_most(share)
}

fn percent(part: f64) -> String {
    let percent = part * 100.0;
    if percent < 10.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

fn time(us: f64) -> String {
    match us {
        us if us < 1e3 => format!("{us:.0} us"),
        us if us < 1e4 => format!("{:.2} ms", us / 1e3),
        us => format!("{:.0} ms", us / 1e3),
    }
}

#[cfg(test)]
mod tests;
