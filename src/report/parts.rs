//! Parts of summaries that reports read: the largest are left out where an output has no use for them.

use super::histogram::curve_us;
use super::metric::Metric;
use crate::summary::{Group, Latency, Summary, TransactionLatency};
use crate::terms::{Code, Layout};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Histograms {
    None,
    /// The values that charts draw: of response times in an open loop, else of service times.
    Own,
    All,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    pub(crate) timelines: bool,
    pub(crate) histograms: Histograms,
}

impl Parts {
    pub(crate) fn of_tables(metrics: &[Metric], layout: Layout) -> Parts {
        let any = metrics.iter().any(|metric| metric.percentile().is_some());
        let all = any || layout == Layout::Slo;
        Parts { timelines: false, histograms: if all { Histograms::All } else { Histograms::None } }
    }

    pub(crate) fn of_charts(metrics: &[Metric]) -> Parts {
        let any = metrics.iter().any(|metric| metric.percentile().is_some());
        Parts { timelines: true, histograms: if any { Histograms::All } else { Histograms::Own } }
    }

    pub(crate) fn keep(self, summary: &mut Summary) {
        // A note tells how well the rate of such a step is known.
        if !self.timelines && !summary.is_warned(Code::TooShort) {
            summary.shorten_timeline();
        }
        summary.transactions.iter_mut().for_each(|of| leave_histograms_out(&mut of.latency));
        let Latency { service, response, wait, failed, by_statement, by_kind, .. } =
            &mut summary.latency;
        for Group { latency, transactions, timeline, .. } in &mut summary.groups {
            if !self.timelines {
                timeline.clear();
                timeline.shrink_to_fit();
            }
            (latency.by_statement, latency.by_kind) = (Vec::new(), Vec::new());
            for one in transactions {
                leave_histograms_out(&mut one.latency);
            }
            let Latency { service, response, wait, failed, .. } = latency;
            let all = [service, failed].into_iter().chain(response).chain(wait);
            all.filter(|_| self.histograms != Histograms::All)
                .for_each(|times| times.histogram = String::new());
        }
        // No output has them.
        (*by_statement, *by_kind) = (Vec::new(), Vec::new());
        if self.histograms == Histograms::All {
            return;
        }
        let (own, other) = match response {
            Some(response) => (response, Some(service)),
            None => (service, None),
        };
        let others = wait.iter_mut().chain([failed]).chain(other);
        others.for_each(|times| times.histogram = String::new());
        if self.histograms == Histograms::Own {
            own.curve_us = curve_us(own).ok().flatten();
        }
        // A chart refuses a damaged one.
        if self.histograms == Histograms::None || own.curve_us.is_some() {
            own.histogram = String::new();
        }
    }
}

fn leave_histograms_out(TransactionLatency { service, response }: &mut TransactionLatency) {
    [service].into_iter().chain(response).for_each(|times| times.histogram = String::new());
}
