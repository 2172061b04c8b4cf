//! Verdicts on recorded shares.

use super::*;
use crate::summary::{Ceiling, ClientHost, Group, Probed, TurnDelay};
use serde_json::Value as Json;

/// A sound step: 60 s, 8 clients on two threads of eight cores, a median service time of 790 us,
/// 10,000 QPS; a client that is not in the way.
fn quiet() -> Summary {
    let mut step = Summary::sound();
    step.latency.service.p50_us = Some(790.0);
    step.plan.engine_threads = 2;
    step.client.cores = 8;
    step.client.same_host = false;
    step.measured_s = 60.0;
    step.totals.qps = 10_000.0;
    step.warnings.clear();
    let turns = TurnDelay {
        probes: 11_650,
        turn_delay_p50_us: Some(9.0),
        turn_delay_p99_us: Some(31.0),
        turn_delay_max_us: Some(410.0),
        own_delay_p99_us: Some(30.0),
        tail_percentile: Some(99),
        turn_delay_tail_us: Some(31.0),
        own_delay_tail_us: Some(30.0),
    };
    let thread = ThreadShare {
        busy: 0.11,
        wall_s: 60.0,
        cpu_s: Some(6.6),
        spun_s: 0.0,
        descheduled_s: Some(0.02),
        turns: turns.clone(),
    };
    step.client.share = Some(Share {
        threads: vec![thread.clone(), thread],
        turns,
        host_cores: Some(8),
        host_busy: Some(0.04),
        other_load: Some(0.01),
        steal: Some(0.0),
        server_cpu_s: None,
        throttled_s: Some(0.0),
        ceiling: None,
    });
    step
}

/// The verdict on the sound step with something else about it.
fn judged(change: impl FnOnce(&mut Summary, &mut Share)) -> Verdict {
    let mut step = quiet();
    let mut share = step.client.share.take().expect("there is one");
    change(&mut step, &mut share);
    step.client.share = Some(share);
    super::verdict(&step, &[]).expect("it looked at itself")
}

fn codes(verdict: &Verdict) -> Vec<&str> {
    verdict.reasons.iter().map(|reason| reason.code.as_str()).collect()
}

/// Returns a value of a reason.
fn value(verdict: &Verdict, reason: usize, name: &str) -> Json {
    verdict.reasons[reason].values.as_ref().expect("values")[name].clone()
}

/// Late turns of a thread that had enough to do.
fn late_by_itself(share: &mut Share, us: f64) {
    share.threads[0].busy = 0.5;
    late(share, us, us);
}

fn late(share: &mut Share, all: f64, own: f64) {
    share.turns.turn_delay_tail_us = Some(all);
    share.turns.own_delay_tail_us = Some(own);
}

fn ceiling(qps: f64) -> Ceiling {
    let calibrated_at = "2026-11-21T00:00:00Z".to_owned();
    Ceiling { qps, us_per_op: 1e6 / qps, clients: 8, engine_threads: 1, calibrated_at }
}

#[test]
fn a_client_that_is_not_in_the_way_is_ok() {
    let verdict = judged(|_, _| {});
    assert_eq!((verdict.kind, verdict.reasons.len()), (VerdictKind::Ok, 0));
    assert_eq!(verdict.finding(), None);
}

#[test]
fn a_step_whose_client_did_not_look_has_none() {
    let mut step = quiet();
    step.client.share = None;
    assert_eq!(super::verdict(&step, &[]), None);
}

#[test]
fn each_reason_begins_above_its_limit() {
    type Change = fn(&mut Summary, &mut Share, f64);
    // The reason, its kind, the last figure that is none, and how a figure gets there.
    let cases: [(&str, VerdictKind, f64, Change); 9] = [
        ("turn_delay", VerdictKind::ClientBound, 0.05 * 790.0, |_, s, us| late_by_itself(s, us)),
        ("thread_busy", VerdictKind::ClientBound, 0.80, |_, s, busy| s.threads[1].busy = busy),
        ("near_ceiling", VerdictKind::ClientBound, 6_000.0, |step, s, qps| {
            s.ceiling = Some(ceiling(10_000.0));
            step.totals.qps = qps;
        }),
        ("throttled", VerdictKind::ClientBound, 0.6, |_, s, held| s.throttled_s = Some(held)),
        ("cores_full", VerdictKind::SharedHost, 0.80, |step, s, busy| {
            step.client.same_host = true;
            s.host_busy = Some(busy);
        }),
        ("other_load", VerdictKind::Noisy, 0.10, |_, s, other| s.other_load = Some(other)),
        ("steal", VerdictKind::Noisy, 0.02, |_, s, steal| s.steal = Some(steal)),
        ("descheduled", VerdictKind::Noisy, 3.0, |_, s, waited| {
            s.threads[0].descheduled_s = Some(waited);
        }),
        ("turn_delay", VerdictKind::Noisy, 0.05 * 790.0, |_, s, us| late(s, us, 30.0)),
    ];
    for (code, kind, limit, change) in cases {
        let at = judged(|step, share| change(step, share, limit));
        assert_eq!(at.kind, VerdictKind::Ok, "{code} at {limit}: {at:?}");
        let above = judged(|step, share| change(step, share, limit * 1.01));
        assert_eq!((above.kind, codes(&above)), (kind, vec![code]), "{code} above {limit}");
        let finding = above.finding().expect("no ok");
        assert_eq!(finding.name().replace('_', "-"), kind.name());
    }
}

#[test]
fn a_client_is_held_back_for_the_whole_window_at_most() {
    let verdict = judged(|_, share| share.throttled_s = Some(150.0));
    assert_eq!(value(&verdict, 0, "part"), Json::from(1.0), "of several cores");
}

#[test]
fn what_is_not_known_is_no_reason() {
    let verdict = judged(|step, share| {
        *share = Share { threads: share.threads.clone(), ..Share::default() };
        share.threads[0].descheduled_s = None;
        step.latency.service.p50_us = None;
        step.client.same_host = true;
    });
    assert_eq!(verdict.kind, VerdictKind::Ok, "{verdict:?}");
}

#[test]
fn few_probes_are_judged_by_a_percentile_that_they_have() {
    let of = |probes, percentile| {
        judged(|_, share| {
            late_by_itself(share, 5_000.0);
            (share.turns.probes, share.turns.tail_percentile) = (probes, Some(percentile));
        })
    };
    assert_eq!(of(PROBES_MIN - 1, 79).kind, VerdictKind::Ok);
    let few = of(PROBES_MIN, 80);
    assert_eq!(few.kind, VerdictKind::ClientBound);
    assert_eq!(value(&few, 0, "part"), Json::from(0.2));
    assert_eq!(value(&few, 0, "late"), Json::from(5_000.0));
    assert_eq!(value(&of(1_000, 99), 0, "part"), Json::from(0.01));
}

#[test]
fn late_turns_without_a_known_cause_are_the_client_s() {
    let verdict = judged(|_, share| {
        late_by_itself(share, 5_000.0);
        share.turns.own_delay_tail_us = None;
    });
    assert_eq!(verdict.kind, VerdictKind::ClientBound);
}

#[test]
fn a_client_with_a_tenth_of_a_core_is_bound_by_it_whoever_counts_the_waiting() {
    // As recorded under `cpu.max` 10000 100000: the kernel may count the time as waiting.
    for waited in [0.1, 50.0] {
        let verdict = judged(|_, share| {
            late(share, 89_000.0, if waited > 1.0 { 12.0 } else { 89_000.0 });
            share.throttled_s = Some(53.0);
            share.threads[0].descheduled_s = Some(waited);
        });
        assert_eq!(verdict.kind, VerdictKind::ClientBound);
        assert!(codes(&verdict).contains(&"throttled"), "{verdict:?}");
    }
}

#[test]
fn other_programs_on_the_cores_are_noise_also_where_they_make_the_client_late() {
    let verdict = judged(|_, share| {
        late(share, 6_200.0, 35.0);
        share.other_load = Some(0.93);
        share.host_busy = Some(0.99);
        share.threads[0].descheduled_s = Some(9.0);
    });
    assert_eq!(verdict.kind, VerdictKind::Noisy);
    assert_eq!(codes(&verdict), ["turn_delay", "other_load", "descheduled"]);
    assert_eq!(value(&verdict, 0, "why"), Json::from("it waited for a core"));
    assert_eq!(value(&verdict, 1, "part"), Json::from(0.93));
}

#[test]
fn turns_that_the_hypervisor_makes_late_are_noise() {
    // Recorded: 8.7 ms at p99 of a median of 20 ms, 2 % of two cores stolen.
    let of = |steal, median| {
        judged(|step, share| {
            step.latency.service.p50_us = Some(20_100.0);
            late_by_itself(share, 8_700.0);
            share.turns.turn_delay_p50_us = Some(median);
            (share.steal, share.host_cores) = (Some(steal), Some(2));
        })
    };
    let verdict = of(0.0199, 80.0);
    assert_eq!((verdict.kind, codes(&verdict)), (VerdictKind::Noisy, vec!["turn_delay"]));
    assert_eq!(value(&verdict, 0, "why"), Json::from("the hypervisor had its core"));
    assert_eq!(of(0.004, 80.0).kind, VerdictKind::ClientBound, "too little for that");
    assert_eq!(of(0.0199, 1_100.0).kind, VerdictKind::ClientBound, "every other turn is late");
}

#[test]
fn what_was_stolen_explains_as_many_late_turns_as_it_is_of_a_core() {
    let of = |percentile| {
        judged(|_, share| {
            late_by_itself(share, 8_700.0);
            share.turns.tail_percentile = Some(percentile);
            (share.steal, share.host_cores) = (Some(0.0199), Some(2));
        })
    };
    assert_eq!(of(97).kind, VerdictKind::Noisy);
    assert_eq!(of(95).kind, VerdictKind::ClientBound, "a twentieth is late, and less was stolen");
}

#[test]
fn late_turns_of_idle_threads_are_not_the_client_s() {
    // Recorded: 3.12 ms for 1 % of the time, a median of 20 ms, threads almost idle, other programs on 36 %.
    let of = |other, busy, median| {
        judged(|step, share| {
            step.latency.service.p50_us = Some(20_800.0);
            late(share, 3_120.0, 3_050.0);
            share.turns.turn_delay_p50_us = Some(median);
            share.threads[1].busy = busy;
            share.other_load = Some(other);
        })
    };
    let verdict = of(0.36, 0.04, 90.0);
    assert_eq!(verdict.kind, VerdictKind::Noisy);
    assert_eq!(codes(&verdict), ["turn_delay", "other_load"]);
    let why = "its threads were idle, other programs used the cores";
    assert_eq!(value(&verdict, 0, "why"), Json::from(why));
    assert_eq!(value(&verdict, 1, "part"), Json::from(0.36));
    assert_eq!(of(0.36, 0.21, 90.0).kind, VerdictKind::ClientBound, "it had enough to do");
    assert_eq!(of(0.10, 0.04, 90.0).kind, VerdictKind::Noisy, "nobody did it");
    assert_eq!(of(0.36, 0.04, 1_100.0).kind, VerdictKind::ClientBound, "it has been stopped");
}

#[test]
fn a_client_that_did_not_run_at_all_was_stopped() {
    let of_busy = |max_us: [f64; 2], descheduled, cpu_s| {
        judged(|_, share| {
            late_by_itself(share, 2_800_000.0);
            share.other_load = Some(0.36);
            for (thread, max_us) in share.threads.iter_mut().zip(max_us) {
                thread.turns.turn_delay_max_us = Some(max_us);
                (thread.busy, thread.descheduled_s) = (0.5, Some(descheduled));
                thread.cpu_s = Some(cpu_s);
            }
        })
    };
    let of = |max_us, descheduled| of_busy(max_us, descheduled, 6.6);
    let worked = of_busy([3e6, 2.9e6], 0.1, 58.0);
    assert_eq!(worked.kind, VerdictKind::ClientBound, "the threads worked meanwhile");
    let stopped = of([3e6, 2.9e6], 0.1);
    assert_eq!((stopped.kind, codes(&stopped)[0]), (VerdictKind::Noisy, "turn_delay"));
    let why = value(&stopped, 0, "why").to_string();
    assert!(why.contains("2.9 s"), "{why}");
    assert_eq!(of([3e6, 400.0], 0.1).kind, VerdictKind::ClientBound, "one thread alone");
    assert_eq!(of([3e6, 2.9e6], 2.0).kind, VerdictKind::ClientBound, "they waited for cores");
}

#[test]
fn a_client_with_hardly_an_op_to_do_is_not_the_limit() {
    // 250 ops a second of 150 us; waking a thread takes longer than 5 % of that each time.
    let verdict = judged(|step, share| {
        step.latency.service.p50_us = Some(150.0);
        step.totals.qps = 250.0;
        late(share, 95.0, 94.0);
        share.turns.turn_delay_p50_us = Some(55.0);
        share.threads.iter_mut().for_each(|thread| thread.busy = 0.01);
    });
    assert_eq!((verdict.kind, codes(&verdict)), (VerdictKind::Noisy, vec!["turn_delay"]));
}

#[test]
fn a_client_among_programs_that_have_most_of_the_cores_is_not_the_limit() {
    let of = |other| {
        judged(|step, share| {
            // The same with more threads than cores.
            step.plan.engine_threads = 16;
            late(share, 6_200.0, 2_000.0);
            share.other_load = Some(other);
            share.threads[0].busy = 0.95;
            share.threads[0].cpu_s = Some(18.0);
            share.threads[0].descheduled_s = Some(33.0);
        })
    };
    let verdict = of(0.77);
    assert_eq!(verdict.kind, VerdictKind::Noisy);
    assert_eq!(codes(&verdict), ["turn_delay", "other_load", "descheduled"]);
    assert_eq!(of(0.2).kind, VerdictKind::ClientBound, "its threads are too many");
}

#[test]
fn a_busy_thread_outweighs_the_noise_around_it() {
    let verdict = judged(|_, share| {
        share.threads[0].busy = 0.98;
        share.other_load = Some(0.5);
    });
    assert_eq!(verdict.kind, VerdictKind::ClientBound);
    assert_eq!(codes(&verdict), ["thread_busy", "other_load"]);
}

#[test]
fn spinning_before_an_instant_is_no_work_when_any_clients_are_paced_or_pause() {
    // A full core, of which three quarters were looks in vain.
    let of = |change: &dyn Fn(&mut Summary)| {
        let verdict = judged(|step, share| {
            change(step);
            let thread = &mut share.threads[0];
            (thread.busy, thread.cpu_s, thread.spun_s) = (0.21, Some(57.0), 45.0);
        });
        verdict.kind
    };
    let with = |group: Group| move |step: &mut Summary| step.groups = vec![group.clone()];
    assert_eq!(of(&|step| step.plan.rate = Some(1_000.0)), VerdictKind::Ok);
    assert_eq!(of(&|step| step.plan.think_s = Some(0.005)), VerdictKind::Ok);
    let paced = Group { rate: Some(100.0), ..Group::default() };
    let thinking = Group { think_s: Some(0.005), ..Group::default() };
    assert_eq!([of(&with(paced)), of(&with(thinking))], [VerdictKind::Ok; 2]);
    assert_eq!([of(&|_| {}), of(&with(Group::default()))], [ClientBound; 2]);
}

#[test]
fn full_cores_that_the_server_shares_outweigh_everything_and_hide_nothing() {
    let verdict = judged(|step, share| {
        step.client.same_host = true;
        step.client.cores = 2;
        share.host_cores = Some(2);
        share.host_busy = Some(0.99);
        late(share, 2_100.0, 900.0);
        share.threads[0].busy = 0.85;
        share.threads[0].descheduled_s = Some(20.0);
    });
    assert_eq!(verdict.kind, VerdictKind::SharedHost);
    assert_eq!(codes(&verdict), ["cores_full", "turn_delay", "descheduled"]);
    assert_eq!(value(&verdict, 0, "busy"), Json::from(0.99));
    assert_eq!(value(&verdict, 1, "late"), Json::from(2_100.0));
}

#[test]
fn cores_that_others_filled_are_not_the_server_s() {
    let of = |other, server_s| {
        judged(|step, share| {
            step.client.same_host = true;
            share.host_busy = Some(0.99);
            (share.other_load, share.server_cpu_s) = (Some(other), server_s);
            late(share, 6_200.0, 35.0);
        })
    };
    let verdict = of(0.95, Some(10.0));
    assert_eq!(verdict.kind, VerdictKind::Noisy);
    assert_eq!(codes(&verdict), ["other_load", "turn_delay"]);
    let reasons = ["cores_full", "turn_delay", "other_load"];
    for verdict in [of(0.12, Some(400.0)), of(0.49, Some(220.0)), of(0.95, None)] {
        assert_eq!((verdict.kind, codes(&verdict)), (VerdictKind::SharedHost, reasons.to_vec()));
    }
}

#[test]
fn a_server_beside_a_client_with_cores_to_spare_is_ok() {
    let verdict = judged(|step, share| {
        step.client.same_host = true;
        share.host_busy = Some(0.55);
        share.server_cpu_s = Some(240.0);
    });
    assert_eq!(verdict.kind, VerdictKind::Ok);
}

#[test]
fn more_threads_than_cores_wait_for_each_other() {
    let verdict = judged(|step, share| {
        step.plan.engine_threads = 16;
        late(share, 4_000.0, 30.0);
        share.threads[0].busy = 0.9;
        share.threads[0].descheduled_s = Some(30.0);
    });
    assert_eq!(verdict.kind, VerdictKind::ClientBound);
    assert_eq!(codes(&verdict), ["turn_delay", "descheduled"]);
}

#[test]
fn an_unsteady_level_is_noise() {
    let level = finding!(LevelChange, "the rate", "rose", 0.2, 30.0);
    let found = [level, finding!(QueryCache, 16 << 10, Json::Null)];
    let verdict = super::verdict(&quiet(), &found).expect("it looked at itself");
    assert_eq!((verdict.kind, codes(&verdict)), (VerdictKind::Noisy, vec!["level_change"]));
}

#[test]
fn the_kinds_are_spelled_as_agreed() {
    let spelled =
        [VerdictKind::Ok, VerdictKind::Noisy, VerdictKind::ClientBound, VerdictKind::SharedHost]
            .map(|kind| {
                (serde_json::to_string(&kind).expect("JSON"), format!("\"{}\"", kind.name()))
            });
    assert!(spelled.iter().all(|(json, name)| json == name), "{spelled:?}");
}

/// A minute of eight cores, 150 s of them the server's.
fn probed(user_s: f64, irq_s: f64, steal_s: f64) -> Probed {
    let idle_s = 480.0 - user_s - irq_s - steal_s;
    serde_json::from_value(serde_json::json!({
        "via": "command", "first_s": -0.3, "last_s": 60.1,
        "process": { "pid": 7, "user_s": 140.0, "sys_s": 10.0 },
        "host": {
            "user_s": user_s, "sys_s": irq_s, "irq_s": irq_s, "iowait_s": 0.0, "idle_s": idle_s,
            "steal_s": steal_s,
        },
    }))
    .expect("a probe's")
}

#[test]
fn the_server_s_host_counts_where_it_was_looked_at() {
    let of = |change: &dyn Fn(&mut Summary)| judged(|step, _| change(step)).kind;
    let ok = VerdictKind::Ok;
    let with = |seen: Probed| move |step: &mut Summary| step.server.probed = Some(seen.clone());
    // 10 s of others, and 100 s of interrupts.
    assert_eq!(of(&with(probed(160.0, 100.0, 0.0))), ok);
    let noisy = |change: &dyn Fn(&mut Summary)| {
        let verdict = judged(|step, _| change(step));
        let part = value(&verdict, 0, "part").as_f64().expect("a share");
        let host = value(&verdict, 0, "host");
        assert_eq!((verdict.kind, host), (VerdictKind::Noisy, "the server's host".into()));
        (codes(&verdict).join(" "), (part * 1e3).round())
    };
    assert_eq!(noisy(&with(probed(215.0, 0.0, 0.0))), ("other_load".to_owned(), 135.0));
    assert_eq!(noisy(&with(probed(150.0, 0.0, 12.0))), ("steal".to_owned(), 25.0));
    // It is not known which process is the server.
    let mut unknown = probed(210.0, 0.0, 0.0);
    unknown.process = None;
    assert_eq!(of(&with(unknown)), ok);
    let here = of(&|step| {
        step.client.same_host = true;
        step.server.probed = Some(probed(210.0, 0.0, 0.0));
    });
    assert_eq!(here, ok, "one host, which the client's own share is of");
}

#[test]
fn others_count_on_each_host_with_the_hypervisor() {
    let near = |step: &Summary, part: f64| {
        let used = used_by_others(step).expect("it looked");
        assert!((used - part).abs() < 1e-9, "{used} instead of {part}");
    };
    let mut step = quiet();
    near(&step, 0.01);
    step.server.probed = Some(probed(215.0, 0.0, 12.0));
    // (215 - 150 + 12) s of 480.
    near(&step, 77.0 / 480.0);
    let share = step.client.share.as_mut().expect("there is one");
    // The two readings of a host are not of one instant.
    (share.other_load, share.steal) = (Some(-0.001), Some(0.25));
    near(&step, 0.25);
    step.server.probed = None;
    step.client.share = None;
    assert_eq!(used_by_others(&step), None);
}

#[test]
fn step_has_the_verdict_of_its_worst_host() {
    let mut step = quiet();
    let share = step.client.share.clone().expect("there is one");
    let mut busy = share.clone();
    busy.threads[0].busy = 0.95;
    let host = |name: &str, share| ClientHost {
        name: name.to_owned(),
        cores: 8,
        share,
        ..ClientHost::default()
    };
    step.hosts = vec![host("c1", Some(share)), host("c2", Some(busy)), host("c3", None)];
    let (verdict, kinds) = of_hosts(&step, &[]);
    assert_eq!(kinds, [Some(VerdictKind::Ok), Some(ClientBound), None]);
    let verdict = verdict.expect("it has one");
    assert_eq!(verdict.kind, ClientBound);
    assert_eq!(codes(&verdict), ["thread_busy", "worst_host"]);
    assert_eq!(value(&verdict, 1, "host"), "c2");
}

#[test]
fn step_is_not_judged_by_a_mixture_of_its_hosts() {
    let mut step = quiet();
    let share = step.client.share.clone();
    let host = || ClientHost { cores: 8, threads: 2, share: share.clone(), ..Default::default() };
    step.hosts = vec![host(), host()];
    // One host's delay and the other's load say nothing together.
    let whole = step.client.share.as_mut().expect("there is one");
    whole.threads[0].busy = 0.95;
    whole.other_load = Some(0.5);
    let ok = Some(VerdictKind::Ok);
    let (verdict, kinds) = of_hosts(&step, &[]);
    assert_eq!((verdict.map(|verdict| verdict.kind), kinds), (ok, vec![ok, ok]));
    // The whole step was unsteady, no host alone.
    let (verdict, kinds) = of_hosts(&step, &[finding!(Drift, "the rate", "fell", 0.2)]);
    assert_eq!((verdict.map(|verdict| verdict.kind), kinds), (Some(Noisy), vec![ok, ok]));
    step.hosts.iter_mut().for_each(|host| host.share = None);
    assert_eq!(of_hosts(&step, &[]), (None, vec![None, None]));
}
