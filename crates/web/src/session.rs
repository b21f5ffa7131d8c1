//! A packet run in progress, as a page steps and observes it.

use aqumen_result::Histogram;
use aqumen_scenario::{Files, Medium, Scenario};
use aqumen_sim::{Options, Session, Stop};
use aqumen_units::{Instant, Span};
use wasm_bindgen::prelude::*;

use crate::{own, refuse};

/// Run of one AQM on a scenario.
#[wasm_bindgen]
pub struct Run {
    session: Session,
    /// Link that is shown.
    link: u32,
    /// Sojourn times at the link since [`Run::clear_sojourns`].
    sojourns: Histogram,
}

#[wasm_bindgen]
impl Run {
    /// Begins a run of the scenario `text`, changed by `changes` (dotted keys and their values in turn), with the AQM
    /// of a SPEC; `None` keeps that of the scenario. The SPEC `own` is the law of the page.
    #[wasm_bindgen(constructor)]
    pub fn new(text: &str, changes: Vec<String>, aqm: Option<String>, seed: u32) -> Result<Run, JsError> {
        let extensions = own::catalogue().map_err(refuse)?;
        let scenario = Scenario::parse_with_extensions(text, "scenario", Files::in_memory([]), extensions);
        let mut scenario = scenario.map_err(refuse)?;
        for change in changes.chunks_exact(2) {
            scenario = scenario.with(&change[0], &change[1]).map_err(refuse)?;
        }
        if let Some(aqm) = aqm {
            scenario = scenario.with("aqm", &aqm).map_err(refuse)?;
        }
        let options = Options { every_service: true, ..Options::default() };
        let session = Session::new(scenario, seed.into(), None, options).map_err(refuse)?;
        let link = session.plan().links.iter().position(|link| link.record);
        let link = link.ok_or_else(|| JsError::new("no link is recorded"))? as u32;
        Ok(Run { session, link, sojourns: Histogram::default() })
    }

    /// Returns the names of the recorded links, the shown one first.
    pub fn links(&self) -> Vec<String> {
        self.session.plan().links.iter().filter(|link| link.record).map(|link| link.name.to_string()).collect()
    }

    /// Shows the recorded link called `name` from now on.
    pub fn show(&mut self, name: &str) -> Result<(), JsError> {
        self.link = self.session.link(name).map_err(refuse)?;
        self.clear_sojourns()
    }

    /// Returns the names of the flow groups, in the order of their numbers.
    pub fn groups(&self) -> Vec<String> {
        self.session.plan().groups.iter().map(|group| group.name.clone()).collect()
    }

    /// Returns the number of the group of each flow.
    pub fn groups_of_flows(&self) -> Vec<u32> {
        self.session.plan().flows.iter().map(|flow| flow.group).collect()
    }

    /// Returns for each group two numbers: its flows as events count them, and how many of them run at the start.
    pub fn counts(&self) -> Result<Vec<u32>, JsError> {
        let scenario = self.session.scenario().map_err(refuse)?;
        let spec = scenario.spec();
        let counts = spec.flows.iter().flat_map(|group| {
            let at_start = spec.events.iter().filter(|event| event.at == Span::ZERO);
            let stopped = at_start.filter(|event| event.stop.as_ref() == Some(&group.name));
            let stopped: u32 = stopped.map(|event| event.count.unwrap_or(group.count)).sum();
            [group.count, group.count.saturating_sub(stopped)]
        });
        Ok(counts.collect())
    }

    /// Returns the rate of the shown link at the start, bit/s; the mean of a medium.
    pub fn rate_bps(&self) -> f64 {
        self.session.plan().links[self.link as usize].aqm.network.link_rate.as_bps() as f64
    }

    /// Returns whether a medium or a trace decides the rate of the shown link, which no event changes then.
    pub fn has_medium(&self) -> bool {
        let line = &self.session.plan().links[self.link as usize].line;
        line.as_ref().is_some_and(|line| line.medium != Medium::Wire)
    }

    /// Returns the target of the shown link in packets, if it has one.
    pub fn target_pkts(&self) -> Option<f64> {
        self.session.plan().links[self.link as usize].target_pkts
    }

    /// Returns the time that the run has reached, nanoseconds.
    pub fn now_ns(&self) -> f64 {
        self.session.now().as_nanos() as f64
    }

    /// Returns the end of the run, nanoseconds.
    pub fn end_ns(&self) -> f64 {
        self.session.end().as_nanos() as f64
    }

    /// Runs up to `until_ns`, or to the end; returns whether that was the end.
    pub fn advance(&mut self, until_ns: f64) -> Result<bool, JsError> {
        let until = Instant::ZERO + Span::from_nanos(until_ns as u64);
        if self.session.now() >= self.session.end() {
            return Ok(true);
        }
        Ok(self.session.advance_to(until, &mut |_| true).map_err(refuse)? == Stop::End)
    }

    /// Runs to the end of the next transmission at the shown link.
    pub fn step_packet(&mut self) -> Result<bool, JsError> {
        Ok(self.session.advance_packet(self.link, &mut |_| true).map_err(refuse)? == Stop::End)
    }

    /// Returns the samples of the shown link from number `first` on: all times in seconds, then all queues in packets,
    /// then all probabilities.
    pub fn series(&self, first: usize) -> Result<Vec<f64>, JsError> {
        let series = self.session.series(self.link).map_err(refuse)?;
        let first = first.min(series.t_s.len());
        Ok([&series.t_s, &series.queue_pkts, &series.probability]
            .iter()
            .flat_map(|all| all[first..].to_vec())
            .collect())
    }

    /// Observes the shown link since the last call: the numbers of `aqumen.session.Observation`, in its order, then the
    /// mean sojourn time in seconds (NaN if no packet left the queue).
    pub fn observe(&mut self) -> Result<Vec<f64>, JsError> {
        let seen = self.session.observe(self.link).map_err(refuse)?;
        let sojourns = self.session.histogram(self.link).map_err(refuse)?;
        let mean_s = sojourns.mean().map_or(f64::NAN, |mean| mean * 1e-9);
        self.sojourns.merge(&sojourns);
        Ok([&seen.numbers()[..], &[mean_s]].concat())
    }

    /// Returns the distribution of the observed sojourn times: all times in seconds, then the fractions at or below
    /// each.
    pub fn sojourns(&self) -> Vec<f64> {
        let (times, fractions): (Vec<f64>, Vec<f64>) = self.sojourns.cumulative().into_iter().unzip();
        times.into_iter().map(|ns| ns * 1e-9).chain(fractions).collect()
    }

    /// Starts the distribution of the sojourn times anew.
    pub fn clear_sojourns(&mut self) -> Result<(), JsError> {
        self.session.histogram(self.link).map_err(refuse)?;
        self.sojourns = Histogram::default();
        Ok(())
    }

    /// Returns the flows since the last call, five numbers each: group, window in segments (NaN without TCP), goodput
    /// in bit/s, retransmissions, timeouts.
    pub fn flows(&mut self) -> Vec<f64> {
        let flows = self.session.flows().into_iter();
        let numbers = flows.flat_map(|flow| {
            let window = flow.window_pkts.unwrap_or(f64::NAN);
            [flow.group.into(), window, flow.goodput_bps, flow.retransmitted as f64, flow.timeouts as f64]
        });
        numbers.collect()
    }

    /// Returns the packets that wait at the shown link, three numbers each: flow, bytes, 1 for a congestion mark.
    pub fn contents(&mut self) -> Result<Vec<u32>, JsError> {
        let packets = self.session.contents(self.link).map_err(refuse)?;
        Ok(packets.iter().flat_map(|packet| [packet.flow, packet.bytes, packet.marked.into()]).collect())
    }

    /// Adds an event, a TOML table. The run is repeated up to now.
    pub fn push(&mut self, event: &str) -> Result<(), JsError> {
        self.session.push(event, &mut |_| true).map_err(refuse)?;
        self.clear_sojourns()
    }

    /// Returns the TOML of the scenario with all events.
    pub fn scenario(&self) -> Result<String, JsError> {
        Ok(self.session.scenario().map_err(refuse)?.to_toml())
    }
}
