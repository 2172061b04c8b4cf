//! Work, memory and pages of a report grow as its summaries do, and no faster.

use std::alloc::{GlobalAlloc, Layout as Block, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;

use crate::common::summaries::{step, worded};
use loadgen::report::{Format, Layout, Options, Question, compare, page, render};
use loadgen::summary::{self, Summary};

/// Bytes that a thread took, those that it has not given back, and the most of these.
struct Counting;

thread_local! {
    static TAKEN: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

fn hold(bytes: i64) {
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[allow(unsafe_code, reason = "the trait is unsafe; all is left to the system's allocator")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Block) -> *mut u8 {
        let _ = TAKEN.try_with(|taken| taken.set(taken.get() + block.size() as u64));
        hold(block.size().cast_signed() as i64);
        unsafe { System.alloc(block) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, block: Block) {
        hold(-(block.size().cast_signed() as i64));
        unsafe { System.dealloc(pointer, block) }
    }
}

const FEW: u32 = 40;
const TIMES: u32 = 4;
/// What is held against all others would take the square of `TIMES`.
const MOST: f64 = 1.5 * TIMES as f64;
const VARIABLES: usize = 400;
/// The page itself, which doubles when it grows, and what a part of it is made from.
const COPIES_MAX: f64 = 4.0;

/// Directories that differ in what there is much of.
#[derive(Debug, Clone, Copy)]
enum Many {
    Labels,
    Settings,
    Warnings,
    Invocations,
    Clashes,
    Rates,
}

const ALL: [Many; 6] =
    [Many::Labels, Many::Settings, Many::Warnings, Many::Invocations, Many::Clashes, Many::Rates];

fn variables() -> BTreeMap<String, String> {
    let variable = |n| (format!("some_variable_of_a_server_{n}"), format!("some value {n}"));
    (0..VARIABLES).map(variable).collect()
}

fn steps(many: Many, count: u32) -> Vec<Summary> {
    let of = |order: u32| {
        let label = match many {
            Many::Invocations | Many::Clashes | Many::Rates => format!("label {}", order % 2),
            _ => format!("label {order}"),
        };
        let mut step = step(order, &label, 8, 1000.0 + f64::from(order * 7919 % 1000));
        step.server.variables.extend(variables());
        let counters = variables().into_keys().map(|name| (name.into(), 1));
        step.server.status.as_mut().expect("its counters").deltas.extend(counters);
        let own = step.server.variables.get_mut("some_variable_of_a_server_7").expect("there");
        match many {
            Many::Labels | Many::Invocations => {}
            Many::Settings => *own = format!("own {order}"),
            // The oldest of each label is another one.
            Many::Clashes => *own = format!("own {}", order < 2),
            Many::Warnings => {
                step.warnings.push(worded("cold_pool", &format!("{order} pages were read")));
            }
            Many::Rates => {
                step.plan.rate = Some(f64::from(100 + order / 2));
                step.latency.response = Some(step.latency.service.clone());
            }
        }
        step
    };
    (0..count).map(of).collect()
}

fn taken(work: impl FnOnce()) -> u64 {
    let before = TAKEN.get();
    work();
    TAKEN.get() - before
}

/// Bytes that an output of some steps takes on its way.
fn cost(output: &str, steps: &[Summary]) -> u64 {
    let all: Vec<&Summary> = steps.iter().collect();
    let plain = Options::default();
    taken(|| {
        let text = match output {
            "page" => page(&all, &plain).map(|_| ()),
            "compare" => {
                let (base, new) = ("label 0".to_owned(), "label 1".to_owned());
                compare(&all, &Question { base, new, latest: true, ..Question::default() })
                    .map(|_| ())
            }
            "csv" => render(&all, &Options { format: Format::Csv, ..plain }).map(|_| ()),
            "json" => render(&all, &Options { format: Format::Json, ..plain }).map(|_| ()),
            "list" => render(&all, &Options { layout: Layout::List, ..plain }).map(|_| ()),
            "peak" => render(&all, &Options { layout: Layout::Peak, ..plain }).map(|_| ()),
            "settings" => render(&all, &Options { layout: Layout::Settings, ..plain }).map(|_| ()),
            _ => render(&all, &plain).map(|_| ()),
        };
        text.expect(output);
    })
}

#[test]
fn outputs_take_as_much_work_for_each_summary_however_many_there_are() {
    let mut wrong = Vec::new();
    for many in ALL {
        let [few, more] = [FEW, FEW * TIMES].map(|count| steps(many, count));
        for output in ["text", "csv", "json", "list", "peak", "settings", "compare", "page"] {
            let [one, all] = [&few, &more].map(|steps| cost(output, steps));
            let times = all as f64 / one as f64;
            if times > MOST {
                wrong.push(format!("{output} of many {many:?}: {times:.1} times as much"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_page_has_as_many_bytes_for_each_label_however_many_there_are() {
    let size = |count| {
        let steps = steps(Many::Settings, count);
        page(&steps.iter().collect::<Vec<_>>(), &Options::default()).expect("a page").len()
    };
    let [few, more] = [FEW, FEW * TIMES].map(size);
    assert!(more < few * TIMES as usize, "{few}, then {more}");
}

#[test]
fn a_page_takes_little_more_memory_than_it_has_bytes() {
    let steps = steps(Many::Labels, FEW * TIMES);
    let all: Vec<&Summary> = steps.iter().collect();
    let before = HELD.get();
    PEAK.set(before);
    let page = page(&all, &Options::default()).expect("a page");
    let times = (PEAK.get() - before) as f64 / page.len() as f64;
    assert!(times < COPIES_MAX, "{times:.2} times its bytes");
}

#[test]
fn summaries_of_one_server_hold_its_variables_and_counters_names_once() {
    let dir = tempfile::tempdir().expect("a directory");
    for (at, step) in steps(Many::Labels, 20).iter().enumerate() {
        fs::write(dir.path().join(format!("{at}.json")), summary::to_json(step)).expect("written");
    }
    let of = |count: usize| {
        let names = (0..count).map(|at| dir.path().join(format!("{at}.json")));
        let before = HELD.get();
        let loaded = summary::load(&names.collect::<Vec<_>>(), false).expect("whole summaries");
        assert_eq!(loaded.summaries.len(), count);
        let held = HELD.get() - before;
        drop(loaded);
        held
    };
    let texts: usize = variables().iter().map(|(name, value)| name.len() + value.len()).sum();
    let each = (of(20) - of(10)) / 10;
    // A summary that held them would have all of them besides its own numbers, which are about as many bytes.
    assert!(
        2 * each < 3 * texts.cast_signed() as i64,
        "{each} bytes a summary, its variables are {texts}"
    );
}
