//! The measuring process's side: it leads the ranks through steps, and enters their parts in the results.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::task::JoinSet;

use super::check::PartCheck;
use super::clock::{self, Offset};
use super::launch::{HERE, Wanted, Way};
use super::link::{SILENCE, Writer};
use super::peer::{Peer, Starting, Watched, end_within, watch};
use super::protocol::{Edges, ToRank};
use super::rendezvous::{Launched, Proved, own_host};
use super::words::hash_plan;
use crate::engine::{
    self, Elsewhere, Go, GroupPart, MeasuredStep, OrderedPlan, PartOrder, StepContext, StepSetup,
};
use crate::error::{Error, Result, line};
#[cfg(feature = "lua")]
use crate::lua::unique_start;
use crate::mysql::{ServerLink, Session, Tables};
use crate::observe::{ClientUse, Cost, Ns};
use crate::plan::{Plan, Spread, Step, limits};
use crate::progress::Progress;
use crate::stop::{Stop, locked, or_stop};
use crate::summary::Server;
use crate::terms::{counted, joined};

#[cfg(not(feature = "lua"))]
fn unique_start() -> u32 {
    0
}

/// The least lead of a start.
const LEAD_MIN: Duration = Duration::from_millis(250);
/// The lead of a start in longest round trips, up to the silence after which a rank is lost.
const LEAD_TRIPS: u32 = 20;
/// The time in which a rank ends that was told to.
const ENDING: Duration = Duration::from_secs(2);

/// The processes on other hosts.
pub(crate) struct Ranks {
    all: Vec<Peer>,
    /// The watch over silence goes on.
    watched: Watched,
}

/// A step that is dealt to the ranks.
struct Dealt<'a> {
    plan: &'a Plan,
    step: &'a Step,
    spread: Spread,
    tables: Tables,
    /// By rank: its threads, by their numbers among all.
    threads: Vec<Vec<usize>>,
    /// By rank: its clock.
    offsets: Vec<Offset>,
}

/// Deals threads to ranks in turn while they have some: `all` of them, numbered from 0.
fn deal(most: &[u32], all: usize) -> Vec<Vec<usize>> {
    let mut dealt = vec![Vec::new(); most.len()];
    let places = |turn: u32| (0..most.len()).filter(move |at| most[*at] > turn);
    for (thread, at) in (0..).flat_map(places).take(all).enumerate() {
        dealt[at].push(thread);
    }
    dealt
}

/// Deals as many threads as this number of clients takes.
fn deal_for(most: &[u32], clients: u32) -> Vec<Vec<usize>> {
    deal(most, most.iter().sum::<u32>().min(clients) as usize)
}

/// Counts the clients of some threads of all.
fn count_clients(own: &[usize], all: usize, clients: u32) -> u32 {
    own.iter().map(|thread| (*thread as u32..clients).step_by(all).count() as u32).sum()
}

/// Shares the log-ins at once among ranks, equally: a server gets as many from few large hosts as from many. With
/// more ranks than log-ins each has one: the turns of the clients bound the rate of all log-ins.
fn share_logins(ranks: usize) -> usize {
    (limits::CONNECTS_AT_ONCE / ranks).max(1)
}

/// Returns the time from the decision to start a step to its start.
fn choose_lead(longest_trip: Duration) -> Duration {
    (longest_trip * LEAD_TRIPS).clamp(LEAD_MIN, SILENCE)
}

impl<'a> Dealt<'a> {
    fn new(context: &StepContext<'a>, most: &[u32], offsets: Vec<Offset>) -> Dealt<'a> {
        let StepContext { plan, step, spread, tables, .. } = *context;
        let threads = deal_for(most, step.clients.saturating_add(plan.clients_beside()));
        Dealt { plan, step, spread, tables, threads, offsets }
    }

    /// Counts the threads of all ranks.
    fn all(&self) -> usize {
        self.threads.iter().map(Vec::len).sum()
    }

    /// Lists the places of the ranks with threads: each is a source of events.
    fn sources(&self) -> impl Iterator<Item = usize> {
        (0..self.threads.len()).filter(|at| !self.threads[*at].is_empty())
    }

    /// Counts the measured clients of a rank.
    fn count_clients(&self, at: usize) -> u32 {
        count_clients(&self.threads[at], self.all(), self.step.clients)
    }

    fn order(&self, at: usize, rank: &Peer, setup: &StepSetup) -> PartOrder {
        let threads = self.threads[at].clone();
        PartOrder {
            plan: if rank.way == Way::Launcher {
                let engine_threads = self.plan.engine_threads;
                OrderedPlan::Own { hash: hash_plan(self.plan), engine_threads }
            } else {
                OrderedPlan::whole(self.plan)
            },
            seed: self.plan.seed,
            step: *self.step,
            spread: self.spread,
            tables: self.tables,
            logins: share_logins(self.sources().count()),
            process: (unique_start().wrapping_add(at as u32 + 1), self.threads.len() as u32 + 1),
            threads,
            interval: setup.interval,
            warm_check: setup.warm_check,
            window: *setup.window.borrow(),
        }
    }
}

impl Ranks {
    /// Starts a rank on each host.
    pub(crate) async fn start(
        wanted: &Wanted,
        stop: &Stop,
        progress: &mut Progress,
    ) -> Result<Ranks> {
        let (ranks, mut started) = (Ranks::none()?, Vec::with_capacity(wanted.hosts.len()));
        for (number, host) in (1..).zip(&wanted.hosts) {
            started.push(ranks.add(Starting::start(number, host, wanted, stop)?));
        }
        ranks.greet(started, stop, progress).await
    }

    /// Takes the ranks that a launcher has started. The clients of this host have a process of their own.
    pub(crate) async fn gather(
        launched: &Launched,
        plan: String,
        stop: &Stop,
        progress: &mut Progress,
    ) -> Result<Ranks> {
        let ranks = Ranks::none()?;
        let mut gathering = launched.gather(plan, progress)?;
        let here = Starting::start(0, HERE, &Wanted::default(), stop)?;
        let mut started = vec![ranks.add(here.rename(own_host()))];
        while !gathering.is_complete() {
            if let Some(Proved { rank, host, stream }) = gathering.look(stop, progress)? {
                let input = stream.try_clone();
                let input = input.map_err(|e| Error::failed(format!("rank {rank}: {e}")))?;
                let starting =
                    Starting::lead((rank, host, Way::Launcher), None, (input, stream), stop)?;
                started.push(ranks.add(starting));
            }
            started.iter().find_map(Starting::lost).map_or(Ok(()), Err)?;
        }
        started.sort_by_key(|starting| starting.number);
        drop(gathering);
        ranks.greet(started, stop, progress).await
    }

    fn none() -> Result<Ranks> {
        let watched = Watched::new(Mutex::new(Some(Vec::new())));
        watch(&watched)?;
        Ok(Ranks { all: Vec::new(), watched })
    }

    fn add(&self, starting: Starting) -> Starting {
        if let Some(all) = &mut *locked(&self.watched) {
            all.push((starting.to.clone(), Arc::clone(&starting.state)));
        }
        starting
    }

    async fn greet(
        mut self,
        started: Vec<Starting>,
        stop: &Stop,
        progress: &mut Progress,
    ) -> Result<Ranks> {
        for starting in started {
            self.all.push(or_stop(stop, starting.greet()).await?);
        }
        let told = |rank: &Peer| {
            Some(format!("{} ({})", line(&rank.name), counted(rank.hello.threads, "core")))
        };
        let told = joined(self.all.iter().map(told), ", ");
        progress.note(&format!("clients on {}", told.unwrap_or_default()));
        Ok(self)
    }

    /// Refuses a host whose loadgen runs no script.
    pub(crate) fn require_lua(&self) -> Result<()> {
        let Some(rank) = self.all.iter().find(|rank| !rank.hello.lua) else { return Ok(()) };
        let (number, name) = (rank.number, line(&rank.name));
        let text = format!("rank {number} ({name}) has a loadgen that was built without Lua");
        Err(Error::server(text).hint(rank.way.same_program(&name)))
    }

    /// Returns the engine threads that each host takes by itself.
    pub(crate) fn threads(&self) -> Vec<u32> {
        self.all.iter().map(|rank| rank.hello.threads).collect()
    }

    /// Refuses a server with several addresses.
    pub(crate) fn check_link(link: &ServerLink) -> Result<()> {
        if link.others.is_empty() {
            return Ok(());
        }
        let text = "the server has several addresses: --hosts and --ranks take only one";
        Err(Error::usage(text).hint("give one address, or leave out --hosts and --ranks"))
    }

    /// Has all ranks look at the server, and at their own limits; refuses where one sees another server.
    pub(crate) async fn meet(
        &mut self,
        link: &ServerLink,
        label: Option<&str>,
        server: &Server,
        plan: &Plan,
    ) -> Result<()> {
        self.check()?;
        Ranks::check_link(link)?;
        let most = plan.clients_max().saturating_add(plan.clients_beside());
        let threads = deal_for(&plan.host_threads, most);
        let all = threads.iter().map(Vec::len).sum();
        let clients = threads.iter().map(|own| count_clients(own, all, most));
        let ranks = self.all.iter_mut().zip(clients);
        let all = join_all(ranks.map(|(rank, clients)| rank.meet(link, label, server, clients)));
        or_stop(&link.stop, async { all.await.into_iter().collect() }).await
    }

    /// Refuses to go on without a rank that is lost.
    pub(crate) fn check(&self) -> Result<()> {
        self.all.iter().find_map(Peer::lost).map_or(Ok(()), Err)
    }

    async fn measure_clocks(&mut self) -> Result<Vec<Offset>> {
        join_all(self.all.iter_mut().map(Peer::measure_clock)).await.into_iter().collect()
    }

    /// Runs one step with the clients on all hosts.
    pub(crate) async fn run_step(
        &mut self,
        context: StepContext<'_>,
        control: &mut Option<Session>,
        progress: &mut Progress,
    ) -> Result<MeasuredStep> {
        self.check()?;
        let stop = &context.link.stop.clone();
        let offsets = or_stop(stop, self.measure_clocks()).await?;
        let most = |of: fn(&Offset) -> Ns| offsets.iter().map(of).max().unwrap_or(0);
        let trip = Duration::from_nanos(most(|offset| offset.longest));
        let clock_error = Duration::from_nanos(most(|offset| offset.error));
        let dealt = Dealt::new(&context, &context.plan.host_threads, offsets);
        let forwards = Mutex::new(JoinSet::new());
        let open = |setups: &[Arc<StepSetup>]| *locked(&forwards) = self.open(&dealt, setups);
        let elsewhere = Elsewhere {
            names: dealt.sources().map(|at| line(&self.all[at].name)).collect(),
            clock_error,
            lead: choose_lead(trip),
            notice: trip * 2,
            open: &open,
        };
        let context = StepContext { elsewhere: Some(&elsewhere), ..context };
        let run = engine::run_step(&context, control, progress).await;
        locked(&forwards).abort_all();
        let edges = self.all.iter().map(Peer::leave_step).collect();
        let mut run = run?;
        // One that is lost by now has done its part, and after a signal nobody waits.
        let clocks = async { Ok(join_all(self.all.iter_mut().map(Peer::measure_clock)).await) };
        let clocks = or_stop(stop, clocks).await.unwrap_or_default();
        self.enter(&mut run, &dealt, edges, &clocks);
        Ok(run)
    }

    /// Has the ranks open the connections of a step; returns what passes on its start and window.
    fn open(&self, dealt: &Dealt<'_>, setups: &[Arc<StepSetup>]) -> JoinSet<()> {
        let (mut forwards, setup) = (JoinSet::new(), &setups[0]);
        for (source, at) in dealt.sources().enumerate() {
            let (rank, offset) = (&self.all[at], dealt.offsets[at]);
            let threads = &dealt.threads[at];
            let parts = setups.iter().map(|setup| GroupPart::of(setup, threads)).collect();
            rank.join_step(source, PartCheck::new(threads.len(), parts), &setup.events);
            let opening = offset.apply(clock::from_instant(setup.opening));
            rank.to.send(ToRank::Open { at: opening, order: dealt.order(at, rank, setup) });
            forwards.spawn(forward(rank.to.clone(), Arc::clone(setup), offset));
        }
        forwards
    }

    /// Enters the ranks' parts in the results of a step.
    fn enter(
        &self,
        run: &mut MeasuredStep,
        dealt: &Dealt<'_>,
        mut edges: Vec<Option<Box<Edges>>>,
        clocks: &[Result<Offset>],
    ) {
        let boots: Vec<Option<&str>> =
            self.all.iter().map(|rank| rank.hello.boot_id.as_deref()).collect();
        leave_out_ranks(&mut edges, &boots, run.counted.measured_s);
        let mut read = BTreeSet::new();
        for (at, edges) in edges.into_iter().enumerate() {
            let after = clocks.get(at).and_then(|clock| clock.as_ref().ok());
            let clocks = (&dealt.offsets[at], after);
            let part = (dealt.threads[at].len(), dealt.count_clients(at));
            let mut host = self.all[at].describe(part, clocks, edges.as_deref());
            // Its CPU is that of all groups.
            host.us_per_op.take_if(|_| !dealt.plan.groups.is_empty());
            run.hosts.push(host);
            if let Some(mut edges) = edges {
                let interfaces = boots[at].map(|boot| (boot, self.all[at].hello.net.as_deref()));
                let own = edges.client.traffic;
                edges.client.traffic = traffic_beside(&mut read, interfaces, own);
                add_use(run, &edges);
            }
        }
    }
}

/// Leaves the CPU of the other ranks of a host out of what others used of it; `boots` are those of the ranks.
fn leave_out_ranks(edges: &mut [Option<Box<Edges>>], boots: &[Option<&str>], measured_s: f64) {
    let cpu_s = |edges: &Edges| edges.client.cost.cpu().as_secs_f64();
    let used: Vec<f64> = edges.iter().map(|edges| edges.as_deref().map_or(0.0, cpu_s)).collect();
    for (at, edges) in edges.iter_mut().enumerate() {
        let Some(edges) = edges else { continue };
        let beside = (0..boots.len()).filter(|other| *other != at && boots[*other] == boots[at]);
        let beside_s: f64 = beside.map(|other| used[other]).sum();
        let all_s = f64::from(edges.share.host_cores.unwrap_or(0)) * measured_s;
        if boots[at].is_some() && beside_s > 0.0 && all_s > 0.0 {
            let others = edges.client.others.map(|others| (others - beside_s / all_s).max(0.0));
            (edges.client.others, edges.share.other_load) = (others, others);
        }
    }
}

/// The boot of a rank's host, and its network namespace: ranks with the same read the same traffic.
type Interfaces<'a> = (&'a str, Option<&'a str>);

/// Returns the traffic of a rank that no other one has counted.
fn traffic_beside<'a>(
    read: &mut BTreeSet<Interfaces<'a>>,
    interfaces: Option<Interfaces<'a>>,
    own: Option<[u64; 2]>,
) -> Option<[u64; 2]> {
    let known = interfaces.filter(|_| own.is_some());
    if known.is_some_and(|of| !read.insert(of)) { Some([0; 2]) } else { own }
}

/// Passes on when a step starts, and its window.
async fn forward(to: Writer<ToRank>, setup: Arc<StepSetup>, offset: Offset) {
    let (mut go, mut window) = (setup.go.clone(), setup.window.clone());
    let mut known = *window.borrow();
    loop {
        let before = known;
        tokio::select! {
            Ok(()) = go.changed() => {
                if let Go::Start(ns) = *go.borrow_and_update() {
                    let start = clock::from_instant(setup.opening) + ns;
                    to.send(ToRank::Go { start: offset.apply(start) });
                }
            }
            Ok(now) = window.wait_for(|now| *now != before) => {
                known = *now;
                to.send(ToRank::Window(known));
            }
            else => return,
        }
    }
}

/// Makes a rank's use part of the step's: costs and traffic in sum, the rest as it is worst. The process that
/// measures has no clients.
fn add_use(run: &mut MeasuredStep, edges: &Edges) {
    let first = run.hosts.iter().filter(|host| host.share.is_some()).count() == 1;
    let (readings, client) = (&mut run.readings, edges.client);
    let all = if first { client } else { sum(&readings.client, &client) };
    (readings.client, run.counted.cost) = (all, all.cost);
    let before = if first { 0 } else { readings.max_rss_bytes };
    readings.max_rss_bytes = before.max(edges.max_rss_bytes);
}

fn sum(one: &ClientUse, other: &ClientUse) -> ClientUse {
    let worst = |of: fn(&ClientUse) -> Option<f64>| {
        of(one).into_iter().chain(of(other)).max_by(f64::total_cmp)
    };
    let traffic = one.traffic.zip(other.traffic);
    ClientUse {
        cost: Cost {
            user: one.cost.user.saturating_add(other.cost.user),
            sys: one.cost.sys.saturating_add(other.cost.sys),
        },
        traffic: traffic.map(|(one, other)| [0, 1].map(|at| one[at].saturating_add(other[at]))),
        busy: worst(|of| of.busy),
        others: worst(|of| of.others),
        steal: worst(|of| of.steal),
        server_s: worst(|of| of.server_s),
        throttled_s: worst(|of| of.throttled_s),
    }
}

impl Drop for Ranks {
    /// Ends all ranks; one that has not ended in time is killed.
    fn drop(&mut self) {
        let started = locked(&self.watched).take();
        let (started, began) = (started.iter().flatten(), Instant::now());
        started.clone().for_each(|(to, _)| to.send(ToRank::End));
        for (_, state) in started {
            end_within(state, ENDING.saturating_sub(began.elapsed()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Share;

    #[test]
    fn threads_are_dealt_in_turn_while_a_rank_has_some() {
        assert_eq!(deal(&[2, 1, 3], 6), [vec![0, 3], vec![1], vec![2, 4, 5]]);
        assert_eq!(deal(&[2, 2], 3), [vec![0, 2], vec![1]]);
        assert_eq!(deal(&[2, 2, 2], 2), [vec![0], vec![1], vec![]]);
        assert_eq!([count_clients(&[0, 2], 3, 8), count_clients(&[1], 3, 8)], [5, 3]);
    }

    #[test]
    fn traffic_is_counted_once_when_ranks_share_their_interfaces() {
        let mut read = BTreeSet::new();
        let mut beside = |boot: Option<&'static str>, net, own| {
            traffic_beside(&mut read, boot.map(|boot| (boot, Some(net))), own)
        };
        let (own, none) = (Some([7, 9]), Some([0; 2]));
        assert_eq!(beside(Some("a"), "net:[1]", None), None);
        assert_eq!(beside(Some("a"), "net:[1]", own), own, "the one before did not know it");
        assert_eq!(beside(Some("a"), "net:[1]", own), none);
        // A container, whatever its name, and another host.
        assert_eq!(beside(Some("a"), "net:[2]", own), own);
        assert_eq!(beside(Some("b"), "net:[1]", own), own);
        assert_eq!([(); 2].map(|()| beside(None, "net:[1]", own)), [own; 2]);
    }

    #[test]
    fn rank_is_none_of_the_others_of_a_rank_on_its_host() {
        let edges = |cpu_s| {
            let client = ClientUse {
                cost: Cost { user: Duration::from_secs(cpu_s), sys: Duration::ZERO },
                traffic: None,
                busy: None,
                others: Some(0.5),
                steal: None,
                server_s: None,
                throttled_s: None,
            };
            let (host_cores, other_load) = (Some(4), client.others);
            let share = Share { host_cores, other_load, ..Share::default() };
            let (max_rss_bytes, state, ops, paused, late) = (0, None, 0, 0, 0);
            Some(Box::new(Edges { client, max_rss_bytes, share, state, ops, paused, late }))
        };
        let mut all = [edges(16), None, edges(4), edges(2), edges(2), edges(2)];
        let boots = [Some("a"), Some("a"), Some("a"), Some("b"), None, None];
        leave_out_ranks(&mut all, &boots, 10.0);
        let told = all.iter().flatten().map(|edges| {
            let both = [edges.client.others, edges.share.other_load];
            both.map(|part| format!("{:.2}", part.expect("it was known")))
        });
        let told: Vec<[String; 2]> = told.collect();
        assert_eq!(told, ["0.40", "0.10", "0.50", "0.50", "0.50"].map(|part| [part, part]));
    }

    #[test]
    fn start_is_put_off_for_no_longer_than_a_rank_may_be_silent() {
        for (trip, expected) in [(0, 250), (20, 400), (4_000, 10_000)] {
            let [trip, expected] = [trip, expected].map(Duration::from_millis);
            assert_eq!(choose_lead(trip), expected);
        }
    }

    #[test]
    fn log_ins_at_once_are_bounded_over_all_ranks() {
        for ranks in 1..=limits::CONNECTS_AT_ONCE {
            let all = ranks * share_logins(ranks);
            assert!(all <= limits::CONNECTS_AT_ONCE && all > 16, "{ranks}: {all}");
        }
        assert_eq!(share_logins(100), 1);
    }
}
