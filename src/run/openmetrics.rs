//! The running step as OpenMetrics 1.0, for `--openmetrics`. The counters are those of one step and begin
//! again with the next one.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::scrape::{self, MakePage};
use crate::engine::{EndReason, MEASURED, Observer, QueueLength, add_class};
use crate::error::{Error, Result};
use crate::observe::{RecordedInterval, Times, seconds};
use crate::plan::{Plan, Step};
use crate::progress::Progress;
use crate::stop::{Stop, locked};
use crate::summary::Phase;
use crate::terms::ErrorClass;

/// The most that the end of a run waits for the scrape that sees its last numbers.
const LAST_SCRAPE: Duration = Duration::from_secs(20);
const QUANTILES: [&str; 6] = ["0.5", "0.9", "0.95", "0.99", "0.999", "1"];
const PHASES: [&str; 5] = ["opening", "warmup", "measure", "drain", "done"];

/// Those that a step may count; each is there from its beginning, so that no first error is lost to a rate.
const CLASSES: [ErrorClass; 13] = [
    ErrorClass::Session,
    ErrorClass::ReadOnly,
    ErrorClass::Full,
    ErrorClass::Interrupted,
    ErrorClass::Ended,
    ErrorClass::Idle,
    ErrorClass::Commit,
    ErrorClass::Behind,
    ErrorClass::Server,
    ErrorClass::Wrong,
    ErrorClass::Lost,
    ErrorClass::Timeout,
    ErrorClass::Connect,
];

type Labels = Vec<(&'static str, String)>;

/// The page of a scrape, served by a thread of its own.
pub(crate) struct Exporter {
    shown: Arc<Shown>,
    pub address: SocketAddr,
}

#[derive(Debug, Default)]
struct Shown {
    live: Mutex<Option<LiveStep>>,
    scrapes: Mutex<Scrapes>,
}

#[derive(Debug, Default)]
struct Scrapes {
    last: Option<Instant>,
    /// Time between the last two, and between the two before.
    gaps: [Option<Duration>; 2],
}

/// The numbers of one step.
#[derive(Debug)]
struct LiveStep {
    labels: Labels,
    /// Its number and try, which no other step of the run has: a try has the place of the one before.
    name: String,
    place: u32,
    of: u32,
    phase: &'static str,
    /// The measured one first.
    groups: Vec<LiveGroup>,
}

#[derive(Debug)]
struct LiveGroup {
    /// The name of a group beside.
    labels: Labels,
    clients: u32,
    rate: Option<f64>,
    ops: u64,
    /// Those by host, where several have the clients.
    ops_by_host: BTreeMap<String, u64>,
    statements: u64,
    /// Since the step's start, by thread or host.
    errors: Vec<Vec<(ErrorClass, u64)>>,
    last: Option<LastInterval>,
}

#[derive(Debug)]
struct LastInterval {
    ops_per_s: f64,
    statements_per_s: f64,
    /// Seconds by kind of time and quantile; none of an interval without operations.
    latency_s: Vec<(&'static str, &'static str, f64)>,
    /// Of the measured clients' open loop.
    queue: Option<QueueLength>,
}

impl Exporter {
    /// Listens, and serves from now on.
    pub(crate) fn start(at: SocketAddr) -> Result<Exporter> {
        let refused = |e: std::io::Error| {
            Error::usage(format!("--openmetrics {at}: {e}"))
                .hint("another address of this host and port; port 0 is a free one")
        };
        let listener = std::net::TcpListener::bind(at).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let shown = Arc::<Shown>::default();
        let of_thread = Arc::clone(&shown);
        let make_page: MakePage = Arc::new(move |is_scrape| of_thread.page(is_scrape));
        let thread = thread::Builder::new().name("openmetrics".to_owned());
        thread.spawn(move || scrape::serve(listener, &make_page)).map_err(refused)?;
        Ok(Exporter { shown, address })
    }

    /// Shows a step from its beginning; `labels` are those of all of its numbers.
    pub(super) fn begin_step(&self, labels: Labels, plan: &Plan, step: &Step) {
        let mut groups = vec![LiveGroup::new(Vec::new(), step.clients, step.rate)];
        groups.extend(plan.groups.iter().map(|group| {
            LiveGroup::new(vec![("group", group.name.to_string())], group.clients, group.rate)
        }));
        let (name, place, of, phase) = (step.name(), step.place, step.of, PHASES[0]);
        let step = LiveStep { labels, name, place, of, phase, groups };
        *locked(&self.shown.live) = Some(step);
    }

    /// Shows that the step has ended; its counters stay.
    pub(super) fn end_step(&self) {
        self.update(|step| {
            step.phase = PHASES[4];
            step.groups.iter_mut().for_each(|group| group.last = None);
        });
    }

    /// Waits until a scraper has seen the end, if one comes from time to time.
    pub(super) fn wait_for_last_scrape(&self, stop: &Stop, progress: &mut Progress) {
        let now = Instant::now();
        let Scrapes { last, gaps } = *locked(&self.shown.scrapes);
        // The longer one: there may be several scrapers.
        let (Some(last), Some(every)) = (last, gaps.into_iter().flatten().max()) else { return };
        let slack = (every / 4).max(Duration::from_secs(3));
        let until = (last + every + slack).min(now + LAST_SCRAPE);
        if until > now + Duration::from_secs(1) {
            progress.note_to_person("waiting for the last scrape");
        }
        let was_seen = || locked(&self.shown.scrapes).last.is_some_and(|at| at > now);
        while Instant::now() < until && !was_seen() && stop.asked().is_none() {
            thread::sleep(Duration::from_millis(20));
        }
        if was_seen() {
            // The page is made, and on its way.
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn update(&self, change: impl FnOnce(&mut LiveStep)) {
        if let Some(step) = &mut *locked(&self.shown.live) {
            change(step);
        }
    }
}

impl Observer for Exporter {
    fn started(&self) {
        self.update(|step| step.phase = PHASES[1]);
    }

    fn interval(&self, interval: &RecordedInterval, queue: QueueLength) {
        let mut last = LastInterval::new(interval);
        self.update(|step| {
            step.phase = match interval.phase {
                Phase::Warmup => PHASES[1],
                Phase::Measure => PHASES[2],
                Phase::Drain => PHASES[3],
            };
            let measured = &mut step.groups[usize::from(MEASURED)];
            last.queue = measured.rate.map(|_| queue);
            measured.add(interval, last);
        });
    }

    fn group_interval(&self, group: u8, interval: &RecordedInterval) {
        let last = LastInterval::new(interval);
        self.update(|step| step.groups[usize::from(group)].add(interval, last));
    }

    fn host_interval(&self, group: u8, host: &str, interval: &RecordedInterval) {
        if interval.phase == Phase::Measure {
            self.update(|step| {
                let by_host = &mut step.groups[usize::from(group)].ops_by_host;
                *by_host.entry(host.to_owned()).or_default() += interval.ops;
            });
        }
    }

    fn errors(&self, group: u8, source: usize, by_class: &[(ErrorClass, u64)]) {
        if by_class.is_empty() {
            return;
        }
        self.update(|step| {
            let errors = &mut step.groups[usize::from(group)].errors;
            errors.resize(errors.len().max(source + 1), Vec::new());
            errors[source] = by_class.to_vec();
        });
    }

    fn end(&self, _: &EndReason) {}
}

impl LastInterval {
    fn new(interval: &RecordedInterval) -> LastInterval {
        let per_s = |n: u64| n as f64 / seconds((interval.end - interval.start).max(1));
        let response = interval.paced.as_deref().map(|paced| &paced.response);
        let times = [("service", Some(&interval.service)), ("response", response)];
        let latency = times.into_iter().filter_map(|(kind, times)| Some((kind, times?)));
        LastInterval {
            ops_per_s: per_s(interval.ops),
            statements_per_s: per_s(interval.statements),
            latency_s: latency.flat_map(|(kind, times)| quantiles(kind, times)).collect(),
            queue: None,
        }
    }
}

fn quantiles(
    kind: &'static str,
    times: &Times,
) -> impl Iterator<Item = (&'static str, &'static str, f64)> {
    QUANTILES.into_iter().filter_map(move |name| {
        let quantile: f64 = name.parse().expect("they are numbers");
        times.percentile_us(100.0 * quantile).map(|us| (kind, name, us / 1e6))
    })
}

impl Shown {
    /// Writes the page of a scrape.
    fn page(self: &Arc<Shown>, is_scrape: bool) -> String {
        if is_scrape {
            let mut scrapes = locked(&self.scrapes);
            let now = Instant::now();
            if let Some(last) = scrapes.last.replace(now) {
                scrapes.gaps = [Some(now - last), scrapes.gaps[0]];
            }
        }
        let mut registry = Registry::with_prefix("loadgen");
        registry.register_collector(Box::new(Arc::clone(self)));
        let mut page = String::new();
        text::encode(&mut page, &registry).expect("a String takes all");
        page
    }
}

/// Families of one step; each member has the step's labels and those of its own.
struct Families<'a, 'e> {
    encoder: DescriptorEncoder<'e>,
    labels: &'a Labels,
    step: &'a str,
}

impl Families<'_, '_> {
    fn write<T: EncodeMetric>(
        &mut self,
        (name, help, unit): (&str, &str, Option<&Unit>),
        members: impl IntoIterator<Item = (Labels, T)>,
    ) -> fmt::Result {
        let mut members = members.into_iter().peekable();
        let Some((_, first)) = members.peek() else { return Ok(()) };
        let kind: MetricType = first.metric_type();
        let mut family = self.encoder.encode_descriptor(name, help, unit, kind)?;
        for (own, member) in members {
            let labels: Labels = self.labels.iter().cloned().chain(own).collect();
            member.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn count(
        &mut self,
        name: &str,
        help: &str,
        members: impl IntoIterator<Item = (Labels, u64)>,
    ) -> fmt::Result {
        // Else a step that counts faster than the one before would look like a part of it.
        let step = ("step", self.step.to_owned());
        let members = members
            .into_iter()
            .map(|(labels, n)| ([vec![step.clone()], labels].concat(), ConstCounter::new(n)));
        self.write((name, help, None), members)
    }

    fn gauge<N: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        members: impl IntoIterator<Item = (Labels, N)>,
    ) -> fmt::Result {
        let members = members.into_iter().map(|(labels, n)| (labels, ConstGauge::new(n)));
        self.write((name, help, None), members)
    }
}

impl Collector for Shown {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let live = locked(&self.live);
        let Some(step) = &*live else { return Ok(()) };
        let mut to = Families { encoder, labels: &step.labels, step: &step.name };
        to.count("operations", "Operations of the step's window", step.each(|of| of.ops))?;
        to.count("statements", "Statements of the step's window", step.each(|of| of.statements))?;
        let by_host = step.groups.iter().flat_map(LiveGroup::by_host);
        to.count("host_operations", "Operations of the step's window by client host", by_host)?;
        let errors = step.groups.iter().flat_map(LiveGroup::errors);
        to.count("errors", "Errors of the step in all its phases, by class", errors)?;
        to.gauge("clients", "Clients of the step", step.each(|of| of.clients))?;
        to.gauge("step", "Place of the step among all, from 1", [(Vec::new(), step.place)])?;
        to.gauge("steps", "Steps in all", [(Vec::new(), step.of)])?;
        let help = "Rate of an open loop's arrivals";
        to.gauge("target_operations_per_second", help, step.some(|of| of.rate))?;
        let phase = |name: &str| (vec![("phase", name.to_owned())], u32::from(name == step.phase));
        to.gauge("phase", "1 for the phase of the step", PHASES.into_iter().map(phase))?;
        let last =
            |of: fn(&LastInterval) -> f64| step.some(move |group| group.last.as_ref().map(of));
        to.gauge("operations_per_second", "Rate of the last interval", last(|of| of.ops_per_s))?;
        let help = "Rate of the last interval, QPS";
        to.gauge("statements_per_second", help, last(|of| of.statements_per_s))?;
        let queue = step.some(|of| Some(of.last.as_ref()?.queue?.waiting));
        to.gauge("queue_length", "Arrivals of an open loop that wait", queue)?;
        let latency = step.groups.iter().flat_map(LiveGroup::latency);
        let help = "Latency of operations in the last interval: from their issue (service), from their \
                    intended instant (response)";
        to.write(("latency", help, Some(&Unit::Seconds)), latency)
    }
}

impl LiveStep {
    /// Lists a number of each group, with its labels.
    fn each<N>(&self, of: impl Fn(&LiveGroup) -> N) -> impl Iterator<Item = (Labels, N)> {
        self.some(move |group| Some(of(group)))
    }

    /// Lists a number of the groups that have it.
    fn some<N>(&self, of: impl Fn(&LiveGroup) -> Option<N>) -> impl Iterator<Item = (Labels, N)> {
        self.groups.iter().filter_map(move |group| Some((group.labels.clone(), of(group)?)))
    }
}

impl LiveGroup {
    fn new(labels: Labels, clients: u32, rate: Option<f64>) -> LiveGroup {
        let (ops_by_host, errors) = (BTreeMap::new(), Vec::new());
        LiveGroup { labels, clients, rate, ops: 0, ops_by_host, statements: 0, errors, last: None }
    }

    fn by_host(&self) -> impl Iterator<Item = (Labels, u64)> {
        let member =
            move |(host, ops): (&String, &u64)| (self.labelled([("host", host.clone())]), *ops);
        self.ops_by_host.iter().map(member)
    }

    /// Returns its labels, and those of one of its numbers.
    fn labelled<const N: usize>(&self, own: [(&'static str, String); N]) -> Labels {
        self.labels.iter().cloned().chain(own).collect()
    }

    fn add(&mut self, interval: &RecordedInterval, last: LastInterval) {
        if interval.phase == Phase::Measure {
            self.ops += interval.ops;
            self.statements += interval.statements;
        }
        // A thread that heard late of the window ended one with operations and without a length.
        if interval.end > interval.start {
            self.last = Some(last);
        }
    }

    fn latency(&self) -> impl Iterator<Item = (Labels, ConstGauge<f64>)> {
        let all = self.last.iter().flat_map(|last| &last.latency_s);
        all.map(move |(kind, quantile, s)| {
            let own = [("time", (*kind).to_owned()), ("quantile", (*quantile).to_owned())];
            (self.labelled(own), ConstGauge::new(*s))
        })
    }

    fn errors(&self) -> Vec<(Labels, u64)> {
        let mut sums = CLASSES.map(|class| (class, 0)).to_vec();
        self.errors.iter().flatten().for_each(|(class, n)| add_class(&mut sums, class, *n));
        let labelled = |class: ErrorClass| self.labelled([("class", class.to_string())]);
        sums.into_iter().map(|(class, n)| (labelled(class), n)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::knobs::Knobs;
    use crate::workload;

    const LABELS: &str = r#"label="a",workload="point-select""#;

    fn labels() -> Labels {
        vec![("label", "a".to_owned()), ("workload", "point-select".to_owned())]
    }

    fn exporter() -> (Exporter, Plan) {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let workload = workload::named("point-select").expect("it is built in");
        let plan = Knobs::default().resolve(workload, 1).expect("sound");
        (Exporter { shown: Arc::default(), address }, plan)
    }

    #[test]
    fn queue_of_an_open_loop_is_there_when_no_op_ends() {
        let (exporter, plan) = exporter();
        let queue = QueueLength { waiting: 7, busy: 1 };
        let stalled =
            RecordedInterval { end: 1_000_000_000, errors: 1, ..RecordedInterval::default() };
        for (rate, is_there) in [(Some(100.0), true), (None, false)] {
            exporter.begin_step(labels(), &plan, &Step::new(1, 1, (1, rate), 1));
            exporter.interval(&stalled, queue);
            let page = exporter.shown.page(false);
            let waiting = format!("loadgen_queue_length{{{LABELS}}} 7\n");
            assert_eq!(page.contains(&waiting), is_there, "{page}");
        }
    }

    #[test]
    fn interval_without_a_length_counts_and_has_no_rate() {
        let (exporter, plan) = exporter();
        exporter.begin_step(labels(), &plan, &Step::new(1, 1, (1, None), 1));
        let phase = Phase::Measure;
        let late = RecordedInterval { phase, ops: 3, ..RecordedInterval::default() };
        exporter.interval(&late, QueueLength::default());
        let page = exporter.shown.page(false);
        let counter = format!("loadgen_operations_total{{{LABELS},step=\"1\"}} 3\n");
        assert!(page.contains(&counter), "{page}");
        assert!(!page.contains("loadgen_operations_per_second"), "{page}");
    }

    #[test]
    fn counters_are_of_one_try_when_two_have_one_place() {
        let (exporter, plan) = exporter();
        let first = Step { place: 2, ..Step::new(7, 3, (1, None), 1) };
        for (step, name) in [(first, "7"), (Step { attempt: 2, ..first }, "7.2")] {
            exporter.begin_step(labels(), &plan, &step);
            let page = exporter.shown.page(false);
            let counter = format!(r#"loadgen_operations_total{{{LABELS},step="{name}"}} 0"#);
            assert!(page.contains(&counter), "{page}");
            assert!(page.contains(&format!("loadgen_step{{{LABELS}}} 2\n")), "{page}");
        }
    }
}
