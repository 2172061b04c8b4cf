//! Builds a Summary from the facts of a step and the measurement: whole, in one place, for all that measures.

use std::collections::{BTreeMap, BTreeSet};

use super::before::PreparedServer;
use super::in_profile::InProfile;
use crate::engine::{self, DealtCounts, MeasuredGroup, MeasuredStep, ThreadCounts, per_s};
use crate::judge::{Calibration, changed_after};
use crate::load::reload::{Loaded, LoadedTable};
use crate::mysql::{Address, ServerLink};
use crate::observe::{Host, HostFacts};
use crate::plan::knobs::{InsertMode, LoadSource, LoadSpec};
use crate::plan::{Plan, Spread, Step};
use crate::summary::{
    self, AddressCounts, Client, ClientHost, CommandRun, Conditions, Group, RateSearch, Server,
    Share, StatementText, Summary, TableRows, Thread, VerifyQuery,
};
use crate::terms::{Finding, OnError, StatementMode, counted, finding, joined};
use crate::workload::Schema;

#[derive(Default)]
pub(crate) struct JobFacts<'a> {
    pub(crate) run_id: String,
    pub(crate) label: Option<String>,
    /// Suffix of the server's version if there is no label.
    pub(crate) options: String,
    pub(crate) notes: BTreeMap<String, String>,
    pub(crate) repeats: u32,
    /// The search that the steps belong to, without a step's number.
    pub(crate) search: Option<RateSearch>,
    pub(crate) in_profile: Option<InProfile<'a>>,
    /// Queries for `loadgen verify`.
    pub(crate) verify: Vec<VerifyQuery>,
    pub(crate) calibration: Option<&'a Calibration>,
}

#[derive(Clone, Copy)]
pub(super) struct StepFacts<'a> {
    pub(super) job: &'a JobFacts<'a>,
    pub(super) server: &'a PreparedServer<'a>,
    pub(super) step: &'a Step,
}

/// The part of a measurement that depends on the kind of job.
pub(super) enum Measured {
    /// With the name of the record of a step that writes.
    Sweep(Box<Conditions>, Option<String>),
    Load(summary::Load),
    Suite(summary::Suite),
}

pub(super) struct Described {
    pub(super) workload: summary::Workload,
    pub(super) plan: summary::Plan,
    pub(super) warnings: Vec<Finding>,
    pub(super) commands: Vec<CommandRun>,
    pub(super) measured: Measured,
}

/// Labels a server by its version, or by its version's number and its options.
pub(super) fn server_label(version: &str, options: &str) -> String {
    let number = version.split('-').next().unwrap_or(version);
    if options.is_empty() { version.to_owned() } else { format!("{number}{options}") }
}

impl JobFacts<'_> {
    /// Names the workload of a plan as summaries do.
    pub(super) fn workload(&self, plan: &Plan) -> String {
        let title = self.in_profile.as_ref().map(|place| &place.part.title);
        title.unwrap_or(&plan.workload.name).clone()
    }
}

impl StepFacts<'_> {
    pub(super) fn step_id(&self) -> String {
        format!("{}-{}", self.job.run_id, self.step.name())
    }

    pub(super) fn label(&self) -> String {
        let of_server = || server_label(&self.server.found.server.version, &self.job.options);
        self.job.label.clone().unwrap_or_else(of_server)
    }
}

/// Makes a step's summary, without a verdict.
pub(super) fn summarise(facts: StepFacts<'_>, run: &MeasuredStep, described: Described) -> Summary {
    let StepFacts { job, server, step } = facts;
    let Described { mut workload, plan, mut warnings, commands, measured } = described;
    let (found, readings) = (&server.found, &run.readings);
    let (mut conditions, mut record, mut load, mut suite) = (None, None, None, None);
    match measured {
        Measured::Sweep(of, name) => (conditions, record) = (Some(*of), name),
        Measured::Load(of) => load = Some(of),
        Measured::Suite(of) => suite = Some(of),
    }
    let (host, same_host) = client_host(server, run);
    let clients = run.groups.iter().map(|group| group.step.clients).sum::<u32>() + step.clients;
    // A calibration is of point selects.
    let calibration = job.calibration.filter(|_| conditions.is_some());
    let ceiling = calibration.and_then(|kept| kept.ceiling(clients, plan.engine_threads));
    let mut share = run.share(host.facts.cores, ceiling);
    if suite.is_some() {
        // Its commands are programs of their own.
        share.other_load = None;
    }
    let experiment = job.in_profile.as_ref().map(|place| {
        let (part, found) = place.describe(step, commands);
        warnings.extend(found);
        workload.name.clone_from(&place.part.title);
        part
    });
    let latency = engine::latency(&run.counted, &run.counts, workload.script.is_some());
    let of_group = |group: &MeasuredGroup| Group {
        addresses: count_addresses(server.link, &group.counts),
        ..engine::describe_group(group)
    };
    Summary {
        schema: summary::SCHEMA.to_owned(),
        loadgen: engine::program(),
        run_id: job.run_id.clone(),
        step_id: facts.step_id(),
        label: facts.label(),
        notes: job.notes.clone(),
        outcome: run.outcome,
        reason: run.error.as_ref().map(ToString::to_string),
        workload: workload.into(),
        plan,
        server: Server {
            settings_changed: readings.changed.clone().unwrap_or_default(),
            status: readings.status.clone(),
            probed: readings.probed.clone(),
            host_facts: found
                .server
                .host_facts
                .clone()
                .or_else(|| server.probe.as_ref()?.facts.clone()),
            ..found.server.clone()
        },
        driver: found.driver.clone(),
        client: client(server, (host, same_host), run, share),
        hosts: run.hosts.clone(),
        started_at: run.counted.started_at.to_string(),
        measured_s: run.counted.measured_s,
        totals: engine::totals(&run.counted, &run.counts),
        latency,
        transactions: run.transactions(),
        addresses: count_addresses(server.link, &run.counts),
        groups: run.groups.iter().map(of_group).collect(),
        timeline: run.counted.timeline.entries.clone(),
        outages: run.outages.clone(),
        ledger: run.ledger.clone(),
        record,
        verify: job.verify.clone(),
        load,
        suite,
        warnings: warnings.into_iter().map(Into::into).collect(),
        verdict: None,
        experiment,
        conditions,
    }
}

/// Counts by the addresses of a link; nothing where there is one alone.
fn count_addresses(link: &ServerLink, counts: &ThreadCounts) -> Vec<AddressCounts> {
    let of = link.addresses();
    let dealt = counts.by_address.iter().filter(|_| of > 1);
    let count = |(address, dealt): (&Address, &DealtCounts)| {
        let DealtCounts { clients, ops, errors } = *dealt;
        AddressCounts { address: address.to_string(), clients, ops, errors }
    };
    link.target.addresses().zip(dealt).map(count).collect()
}

fn client_host(server: &PreparedServer<'_>, run: &MeasuredStep) -> (Host, bool) {
    let hosts = &run.hosts;
    if hosts.is_empty() {
        return (server.host.clone(), server.found.same_host);
    }
    let count = |of: fn(&ClientHost) -> &String| {
        let mut counts = BTreeMap::<&str, (BTreeSet<_>, usize)>::new();
        for (at, host) in hosts.iter().enumerate() {
            let (all, ranks) = counts.entry(of(host)).or_default();
            all.insert(identify_host(at, host));
            *ranks += 1;
        }
        counts
    };
    let all = |of| count(of).into_keys().collect::<Vec<&str>>().join(", ");
    let cores = count_cores(hosts);
    let kernel = all(|host| &host.kernel);
    // Their numbers are a condition, too.
    let of_each = count(|host| &host.cpu).into_iter().map(|(cpu, (all, ranks))| {
        let hosts = counted(all.len() as u64, "host");
        let more = (ranks > all.len()).then(|| format!(" ({ranks} ranks)"));
        Some(format!("{hosts} of {cpu}{}", more.unwrap_or_default()))
    });
    let cpu = joined(of_each, ", ").unwrap_or_default();
    let facts = HostFacts { kernel, cpu, cores, memory_bytes: 0 };
    let name = all(|host| &host.host);
    (Host { name, cores_usable: cores, facts }, hosts.iter().any(|host| host.same_host))
}

/// Returns a key of the host of a rank; one whose boot nobody knows is a host of its own.
fn identify_host(at: usize, host: &ClientHost) -> Result<(&String, &String), usize> {
    host.boot_id.as_ref().map(|id| (id, &host.host)).ok_or(at)
}

/// Counts the cores of the hosts. Ranks of one host have no more than the host, if one of them measured and knows it.
fn count_cores(hosts: &[ClientHost]) -> u32 {
    let mut by_host = BTreeMap::<_, (u32, Option<u32>)>::new();
    for (at, host) in hosts.iter().enumerate() {
        let all = host.share.as_ref().and_then(|share| share.host_cores);
        let (sum, most) = by_host.entry(identify_host(at, host)).or_default();
        *sum += host.cores;
        *most = (*most).max(all);
    }
    by_host.into_values().map(|(sum, most)| most.map_or(sum, |most| sum.min(most))).sum()
}

fn client(
    server: &PreparedServer<'_>,
    (host, same_host): (Host, bool),
    run: &MeasuredStep,
    share: Share,
) -> Client {
    let (ops, reading) = (run.counted.timeline.window.ops, &run.readings.client);
    let rtts = run.hosts.iter().filter_map(|host| host.rtt_us);
    let cost = run.counted.cost;
    let usage = run.counts.usage.iter();
    // A host that is lost does not tell its cost.
    let costs_are_of_ops = run.groups.is_empty() && run.lost.is_empty();
    Client {
        host: host.name,
        kernel: host.facts.kernel,
        cpu: host.facts.cpu,
        cores: host.cores_usable,
        same_host,
        user_s: cost.user.as_secs_f64(),
        sys_s: cost.sys.as_secs_f64(),
        us_per_op: (ops > 0 && costs_are_of_ops)
            .then(|| cost.cpu().as_secs_f64() * 1e6 / ops as f64),
        threads: usage.map(|thread| Thread { busy: thread.share.busy }).collect(),
        max_rss_bytes: run.readings.max_rss_bytes,
        rtt_us: rtts.max_by(f64::total_cmp).or(server.found.rtt_us),
        net_rx_bytes: reading.traffic.map(|[received, _]| received),
        net_tx_bytes: reading.traffic.map(|[_, sent]| sent),
        share: Some(share),
    }
}

/// Describes a sweep; `found` are the findings of its set-up.
pub(super) fn describe_sweep(
    facts: StepFacts<'_>,
    plan: &Plan,
    run: &MeasuredStep,
    found: Vec<Finding>,
    commands: Vec<CommandRun>,
    measured: Measured,
) -> Described {
    let StepFacts { job, server: at, step } = facts;
    let seed = at.dataset.data_seed.map(u64::from);
    let search = job.search.clone().zip(step.search);
    let search = search.map(|(of, number)| RateSearch { number, ..of });
    let mut warnings = engine::findings(run, plan, step);
    warnings.extend(at.warnings.iter().cloned().chain(found));
    let several = (at.link.addresses() > 1).then(|| at.link.target.name_addresses());
    warnings.extend(several.map(|all| finding!(SeveralAddresses, all)));
    let mut workload = engine::workload(plan, at.spread);
    // The ledger is that of all groups.
    workload.unfollowed = workload.unfollowed.or_else(|| plan.unfollowed());
    if !run.lost.is_empty() && plan.may_write() {
        let lost = || "a host was lost, and nobody knows its writes".to_owned();
        workload.unfollowed.get_or_insert_with(lost);
    }
    Described {
        workload,
        plan: engine::plan(plan, step, at.spread, at.dataset.tables, seed, search),
        warnings,
        commands,
        measured,
    }
}

pub(super) fn describe_load(
    facts: StepFacts<'_>,
    run: &MeasuredStep,
    spec: &LoadSpec,
    loaded: Loaded,
    verified: bool,
) -> Described {
    let rows_of = |of: &LoadedTable| TableRows { table: of.name.clone(), rows: of.rows };
    let tables: Vec<TableRows> = loaded.tables.iter().map(rows_of).collect();
    let (file, size) = match &spec.source {
        LoadSource::Generated { rows, data_seed } => (None, (spec.tables, *rows, Some(*data_seed))),
        LoadSource::Dump { path } => {
            let most = tables.iter().map(|table| table.rows).max().unwrap_or(0);
            (Some(path.display().to_string()), (tables.len() as u32, most, None))
        }
    };
    let (insert_bytes, sql) = match spec.insert {
        _ if file.is_some() => (None, "the dump's own"),
        InsertMode::Extended { bytes } => (Some(bytes), "INSERT INTO {table} VALUES (…),(…),…"),
        InsertMode::Single => (None, "INSERT INTO {table} VALUES (…)"),
        InsertMode::LoadData => (None, "LOAD DATA LOCAL INFILE … INTO TABLE {table}"),
    };
    let insert = StatementText { kind: "insert".to_owned(), sql: sql.to_owned(), repeat: 1 };
    let mut warnings: Vec<Finding> = Vec::new();
    warnings.extend((loaded.warnings > 0).then(|| finding!(ServerWarnings, loaded.warnings)));
    if let (Some(file), Some(asked)) = (&file, &spec.charset)
        && !asked.eq_ignore_ascii_case(&loaded.charset)
    {
        let (file, set) = (file.clone(), loaded.charset.as_str());
        warnings.push(finding!(Charset, file, set, asked.as_str()));
    }
    let left_out = loaded.left_out.iter().map(|about| about.name().to_owned());
    let left_out: Vec<String> = left_out.collect();
    warnings.extend((!left_out.is_empty()).then(|| finding!(Unsent, left_out.join(", "))));
    let load = Measured::Load(summary::Load {
        source: if file.is_none() { "generated" } else { "dump" }.to_owned(),
        mode: file.is_none().then(|| spec.insert.to_string()),
        insert_bytes,
        file,
        rows: loaded.rows,
        rows_per_s: per_s(loaded.rows, run.counted.measured_s),
        statements: run.counted.timeline.window.statements,
        bytes: loaded.bytes,
        charset: loaded.charset,
        character_sets: loaded.character_sets,
        tables,
        verified,
        read_before: loaded.read_before,
        left_out,
    });
    let mut described = describe_timed(facts, run, spec.name(), vec![insert], size, load);
    described.warnings.extend(warnings);
    described
}

pub(super) fn describe_timed(
    facts: StepFacts<'_>,
    run: &MeasuredStep,
    name: String,
    statements: Vec<StatementText>,
    (tables, rows, data_seed): (u32, u64, Option<u32>),
    measured: Measured,
) -> Described {
    let mut warnings = Vec::from_iter(cfg!(debug_assertions).then(|| finding!(DebugBuild)));
    warnings.extend(changed_after(run.readings.changed.as_deref()));
    warnings.extend(run.readings.status.is_none().then(|| finding!(NoStatus)));
    let workload = summary::Workload {
        name,
        built_in: false,
        statements,
        mode: StatementMode::Text,
        distribution: "sequential".to_owned(),
        spread: Spread::Pinned,
        schema: Schema::Sbtest.to_string(),
        options: BTreeMap::new(),
        option_defaults: None,
        transactions: None,
        unfollowed: None,
        script: None,
    };
    let plan = summary::Plan {
        tables,
        rows,
        data_seed: data_seed.map(u64::from),
        clients: 1,
        engine_threads: 1,
        warmup_s: 0.0,
        time_s: None,
        ops: None,
        rate: None,
        arrival: None,
        think_s: None,
        reconnect_every: None,
        queues: None,
        seed: 0,
        charset: None,
        on_error: OnError::Abort,
        begins_again: None,
        max_errors: None,
        op_timeout_s: None,
        repeat_index: facts.step.repeat,
        repeats: facts.job.repeats,
        search: None,
    };
    Described { workload, plan, warnings, commands: Vec::new(), measured }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Counted, Readings};
    use crate::error::{Error, Kind};
    use crate::judge;
    use crate::mysql::{ConnectOptions, Dataset, Fingerprint, ServerLink};
    use crate::observe::{ClientReading, ROOT, Whereabouts, host};
    use crate::plan::experiment::{self, Overrides};
    use crate::plan::knobs::Knobs;
    use crate::plan::profile::Profile;
    use crate::stop::Stop;
    use crate::summary::{Driver, Outcome, SettingChange, SuiteTest, VerdictKind};
    use crate::terms::Class;
    use crate::workload::builtin;

    fn job<'a>() -> JobFacts<'a> {
        JobFacts {
            run_id: "00ff".to_owned(),
            options: " --a".to_owned(),
            notes: [("why".to_owned(), "a test".to_owned())].into(),
            repeats: 3,
            search: Some(RateSearch { number: 0, ..RateSearch::default() }),
            ..JobFacts::default()
        }
    }

    fn step() -> Step {
        Step { place: 1, search: Some(5), ..Step::new(7, 1, (4, None), 2) }
    }

    fn found() -> Fingerprint {
        let data = Some(9 << 20);
        let server = Server {
            data_bytes: data,
            table_formats: Some(Vec::new()),
            buffer_pool_bytes: Some(1 << 20),
            version: "10.11.6-MariaDB".to_owned(),
            ..Server::default()
        };
        let (driver, whereabouts) = (Driver::default(), Whereabouts::default());
        Fingerprint { server, driver, same_host: true, whereabouts, rtt_us: Some(40.0) }
    }

    /// A job of half a second with this many operations.
    fn measured(ops: u64, error: Option<Error>) -> MeasuredStep {
        let mut counted = Counted { measured_s: 0.5, ..Counted::default() };
        (counted.timeline.window.ops, counted.timeline.window.statements) = (ops, ops);
        let change = SettingChange { name: "a".to_owned(), before: None, after: None };
        let (now, changed) = (ClientReading::now(None), Some(vec![change]));
        let readings = Readings {
            client: now.since(&now),
            status: None,
            probed: None,
            changed,
            max_rss_bytes: 1 << 20,
        };
        MeasuredStep::timed(counted, readings, error)
    }

    fn summary(run: &MeasuredStep, of: impl Fn(StepFacts<'_>) -> Described) -> Summary {
        let link = ServerLink::to(ConnectOptions::canned(1), &Stop::default()).expect("options");
        let dataset = Dataset { data_seed: Some(3), ..Dataset::default() };
        let (host, warnings) = (host::facts(std::path::Path::new(ROOT)), Vec::new());
        let (link, control, found, probe, spread) = (&link, None, found(), None, Spread::Random);
        let server =
            PreparedServer { link, control, found, host, probe, warnings, spread, dataset };
        let facts = StepFacts { job: &job(), server: &server, step: &step() };
        summarise(facts, run, of(facts))
    }

    #[test]
    fn a_suite_has_its_facts_and_its_end_when_a_signal_cut_it() {
        let run = measured(2, Some(Error::new(Kind::Interrupted, "interrupted")));
        let mut summary = summary(&run, |facts| {
            let suite = summary::Suite { tests: vec![SuiteTest::default()], output: None };
            let (name, none) = ("suite-a".to_owned(), (0, 0, None));
            describe_timed(facts, &run, name, Vec::new(), none, Measured::Suite(suite))
        });
        assert_eq!(summary.label, "10.11.6 --a");
        assert_eq!((summary.step_id.as_str(), summary.outcome), ("00ff-7", Outcome::Interrupted));
        assert_eq!(summary.reason.as_deref(), Some("interrupted"));
        assert_eq!((summary.totals.ops, summary.totals.qps), (2, 4.0));
        assert_eq!((summary.plan.repeats, summary.plan.repeat_index), (3, 2));
        assert_eq!((summary.plan.clients, &summary.plan.search), (1, &None));
        assert_eq!(summary.server.settings_changed.len(), 1);
        assert_eq!((summary.client.max_rss_bytes, summary.client.rtt_us), (1 << 20, Some(40.0)));
        assert!(summary.suite.is_some() && summary.load.is_none());
        let share = summary.client.share.as_mut().expect("it looked at its host");
        assert_eq!((share.threads.len(), share.other_load), (0, None));
        (share.host_busy, share.steal) = (Some(0.5), Some(0.3));
        let judged = judge::judge_step(&summary);
        let verdict = judged.verdict.expect("a verdict");
        assert_eq!((judged.class, verdict.kind), (Some(Class::IoBound), VerdictKind::Noisy));
        assert!(judged.findings.is_empty());
    }

    #[test]
    fn hosts_are_the_same_client_in_whatever_order_they_are_named() {
        let plan = Knobs::default().resolve(builtin().remove(0), 1).expect("a plan");
        let client = |boot_id: Option<&str>, cpus: [&str; 3]| {
            let host = |cpu: &str| {
                let (boot_id, cpu) = (boot_id.map(str::to_owned), cpu.to_owned());
                ClientHost { boot_id, cpu, cores: 2, ..Default::default() }
            };
            let run = MeasuredStep { hosts: cpus.map(host).into(), ..measured(8, None) };
            let of = |facts: StepFacts<'_>| {
                let sweep = Measured::Sweep(Box::default(), None);
                describe_sweep(facts, &plan, &run, Vec::new(), Vec::new(), sweep)
            };
            let client = summary(&run, of).client;
            (client.cpu, client.cores)
        };
        let told = client(None, ["A", "B", "A"]);
        assert_eq!(told, ("2 hosts of A, 1 host of B".to_owned(), 6));
        assert_eq!(client(None, ["B", "A", "A"]), told);
        // Ranks of one host, on cores of their own.
        assert_eq!(client(Some("a"), ["A"; 3]), ("1 host of A (3 ranks)".to_owned(), 6));
    }

    #[test]
    fn cores_of_a_host_are_counted_once_when_its_ranks_share_them() {
        let rank = |boot: Option<&str>, cores, host_cores| ClientHost {
            boot_id: boot.map(str::to_owned),
            cores,
            share: Some(Share { host_cores: Some(host_cores), ..Share::default() }),
            ..ClientHost::default()
        };
        let count = |ranks: [ClientHost; 3]| count_cores(&ranks);
        let all = |boots: [Option<&str>; 3], cores| count(boots.map(|boot| rank(boot, cores, 8)));
        assert_eq!(all([Some("a"), Some("a"), Some("b")], 8), 16);
        // A launcher bound these to cores of their own.
        assert_eq!(all([Some("a"); 3], 2), 6);
        assert_eq!(all([None; 3], 8), 24);
        let idle = ClientHost { share: None, ..rank(Some("a"), 2, 8) };
        assert_eq!(count([idle.clone(), idle, rank(Some("b"), 2, 8)]), 6);
    }

    #[test]
    fn cost_of_an_op_is_unknown_when_a_host_is_lost() {
        let plan = Knobs::default().resolve(builtin().remove(0), 1).expect("a plan");
        let is_known = |lost: Vec<usize>| {
            let run = MeasuredStep { lost, ..measured(8, None) };
            let of = |facts: StepFacts<'_>| {
                let sweep = Measured::Sweep(Box::default(), None);
                describe_sweep(facts, &plan, &run, Vec::new(), Vec::new(), sweep)
            };
            summary(&run, of).client.us_per_op.is_some()
        };
        assert_eq!([is_known(Vec::new()), is_known(vec![0])], [true, false]);
    }

    #[test]
    fn workload_has_the_name_of_its_run_in_a_profile() {
        let text = "name = 'x'\n[[server]]\nsandbox = {}\n\
                    [[run]]\nworkload = 'point-select'\nclients = 1\n";
        let profile = Profile::parse(text, "p").expect("sound");
        let mut experiment = experiment::build(&profile, &Overrides::default()).expect("sound");
        // As of a script whose run has a name: its plan has the script's.
        experiment.parts[0].title = "mine".to_owned();
        let (legs, part) = (experiment.legs(|_| true), &experiment.parts[0]);
        let plan = part.plan().expect("a sweep");
        let place = InProfile {
            experiment: &experiment,
            leg: &legs[0],
            written_by: None,
            offset: 0,
            subject: &experiment.subjects[0],
            part,
            pid: None,
            scaled: None,
            last: None,
        };
        let facts = JobFacts { in_profile: Some(place), ..JobFacts::default() };
        assert_eq!(facts.workload(plan), "mine");
        assert_eq!(JobFacts::default().workload(plan), "point-select");
    }

    #[test]
    fn a_sweep_has_the_facts_of_its_tables_and_its_search() {
        let run = measured(8, None);
        let plan = Knobs::default().resolve(builtin().remove(0), 1).expect("a plan");
        let summary = summary(&run, |facts| {
            let record = Some("a-record".to_owned());
            let sweep = Measured::Sweep(Box::default(), record);
            describe_sweep(facts, &plan, &run, Vec::new(), Vec::new(), sweep)
        });
        assert_eq!((summary.plan.data_seed, summary.server.data_bytes), (Some(3), Some(9 << 20)));
        assert_eq!(summary.plan.search.as_ref().map(|search| search.number), Some(5));
        assert_eq!(summary.record.as_deref(), Some("a-record"));
        assert!(summary.conditions.is_some() && summary.client.share.is_some());
        assert_eq!((summary.verdict.as_ref(), summary.server.class), (None, None));
        let judged = judge::judge_step(&summary);
        let judged = summary.judged(judged);
        assert!(judged.verdict.is_some() && judged.server.class.is_some());
    }
}
