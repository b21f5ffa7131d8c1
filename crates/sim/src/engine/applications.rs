//! Applications: the traffic sources that tell flows what to send, and what becomes of their requests.
//!
//! A source belongs to one flow, or to a group: then each of its transfers takes an idle flow of the group, and is
//! refused if there is none.
//!
//! A source that only writes, to a TCP whose window is full, would change nothing with each write until the sender has
//! something to do. Then it *sleeps*: no events come for its writes, and the sender is offered all of them, each with
//! its own moment, before its next event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqumen_result::Served;
use aqumen_scenario::Traffic;
use aqumen_scenario::traffic::Scope;
use aqumen_traffic::{Action, Step};
use aqumen_transport::Message;
use aqumen_transport::tcp::Sender;
use aqumen_units::Bytes;

use super::application::{Driver, OfFlow, OfGroup, Request};
use super::hosts::{Hosts, NONE};
use super::moment::instant;
use super::totals::FlowTotal;
use super::ways::Ways;
use crate::event::next_epoch;

impl Hosts<'_> {
    /// `may_sleep`: sources need no events where nothing comes of them.
    pub(super) fn add_applications(&mut self, ways: &Ways<'_>, may_sleep: bool) {
        for (number, group) in self.plan.groups.iter().enumerate() {
            if group.traffic == Traffic::Bulk {
                continue;
            }
            let driver = |plan, flow| Some(Driver::new(plan, aqumen_traffic::build(&group.traffic)?, flow));
            let shared = group.traffic.scope() == Scope::Group;
            let connections = group.traffic.connections();
            let may_sleep = may_sleep && !group.traffic.asks();
            for flow in group.flows.clone() {
                let connection = (flow - group.flows.start) % connections;
                let state = &mut self.flows[flow as usize];
                state.application = self.applications.of_flows.len() as u32;
                state.sender = Sender::new(ways.configs[number], Some(Bytes(0)));
                self.applications.of_flows.push(OfFlow {
                    flow,
                    driver: if shared || connection > 0 { None } else { driver(self.plan, flow) },
                    group: if shared { self.applications.of_groups.len() as u32 } else { NONE },
                    connection,
                    connections,
                    running: false,
                    may_sleep,
                    sleeps: false,
                    waits: false,
                    tells: group.transport.tells_delivery(),
                    open: false,
                    request: None,
                    page_at: None,
                    delivered_at: 0,
                    messages: 0,
                    retired: FlowTotal::NOTHING,
                });
            }
            if shared && let Some(driver) = driver(self.plan, group.flows.start) {
                self.applications.of_groups.push(OfGroup {
                    driver,
                    running: false,
                    idle: BinaryHeap::new(),
                    group: number as u32,
                });
            }
        }
    }

    fn application(&mut self, flow: u32) -> &mut OfFlow {
        &mut self.applications.of_flows[self.flows[flow as usize].application as usize]
    }

    /// The flow's application begins or goes on. A group's begins with its first flow.
    pub(super) fn start_application(&mut self, ways: &mut Ways<'_>, flow: u32, now: u64) {
        let application = self.application(flow);
        application.running = true;
        let (group, busy, waits) = (application.group, application.request.is_some(), application.waits);
        if group == NONE {
            let planned = application.driver.as_mut().and_then(|driver| driver.pending.take_if(|(at, _)| *at <= now));
            if let Some((_, action)) = planned {
                self.perform(ways, flow, now, action);
            } else if application.driver.as_ref().is_some_and(|driver| driver.pending.is_some()) {
                return;
            }
            // What it waits for may still be under way.
            if !waits {
                self.advance(ways, flow, now);
            }
            return;
        }
        let of_group = &mut self.applications.of_groups[group as usize];
        if !busy {
            of_group.idle.push(Reverse(flow));
        }
        if !of_group.running {
            of_group.running = true;
            self.advance_group(ways, group, now);
        }
    }

    /// The flow's application does nothing more; what it asked for goes on. A group's ends with its first flow.
    pub(super) fn stop_application(&mut self, ways: &Ways<'_>, flow: u32, now: u64) {
        self.offer_slept(ways, flow, now);
        let application = self.application(flow);
        (application.running, application.sleeps) = (false, false);
        let group = application.group;
        if let Some(driver) = &mut application.driver {
            // Packets are planned again by the clock of their source. A transfer or a page counts as begun
            // for its source: it comes late.
            driver.pending.take_if(|(_, action)| matches!(action, Action::Write(_)));
        }
        if let Some(of_group) = self.applications.of_groups.get_mut(group as usize) {
            of_group.idle.retain(|Reverse(idle)| *idle != flow);
            if self.plan.groups[of_group.group as usize].flows.start == flow {
                of_group.running = false;
                of_group.driver.pending = None;
            }
        }
    }

    /// The moment of an application's action.
    pub(super) fn on_application(&mut self, ways: &mut Ways<'_>, now: u64, number: u32) {
        let flows = self.applications.of_flows.len() as u32;
        let driver = match self.applications.of_flows.get_mut(number as usize) {
            Some(application) if !application.running => None,
            Some(application) => application.driver.as_mut(),
            None => Some(&mut self.applications.of_groups[(number - flows) as usize].driver),
        };
        // A stopped application has nothing pending, one that went on since then something later.
        let Some(action) = driver.and_then(|driver| driver.pending.take_if(|(at, _)| *at == now)) else { return };
        if number < flows {
            let flow = self.applications.of_flows[number as usize].flow;
            self.perform(ways, flow, now, action.1);
            self.advance(ways, flow, now);
        } else {
            self.give(ways, number - flows, now, action.1);
            self.advance_group(ways, number - flows, now);
        }
    }

    /// Asks a flow's source what to do until there is nothing to do now.
    fn advance(&mut self, ways: &mut Ways<'_>, flow: u32, now: u64) {
        loop {
            let number = self.flows[flow as usize].application;
            let application = &mut self.applications.of_flows[number as usize];
            let Some(driver) = application.driver.as_mut().filter(|_| application.running) else { return };
            if let Some(rate) = self.flows[flow as usize].rate_bps(&self.agents) {
                driver.source.on_rate(rate);
            }
            match driver.next(now) {
                Step::At(at, action) if at <= instant(now) => self.perform(ways, flow, now, action),
                Step::At(at, action) => {
                    driver.pending = Some((at.as_nanos(), action));
                    application.sleeps = application.may_sleep && self.flows[flow as usize].holds_offers();
                    if !application.sleeps {
                        ways.post.schedule(at.as_nanos(), ways.post.ranks.application + number);
                    }
                    return;
                }
                Step::Await => {
                    let application = self.application(flow);
                    application.waits = true;
                    let connections = application.connections;
                    if !(flow..flow + connections).any(|connection| self.expects(connection) && self.settle(connection))
                    {
                        return;
                    }
                }
                Step::End => return,
            }
        }
    }

    fn advance_group(&mut self, ways: &mut Ways<'_>, number: u32, now: u64) {
        loop {
            let rank = ways.post.ranks.application + self.applications.of_flows.len() as u32 + number;
            let of_group = &mut self.applications.of_groups[number as usize];
            if !of_group.running {
                return;
            }
            match of_group.driver.next(now) {
                Step::At(at, action) if at <= instant(now) => self.give(ways, number, now, action),
                Step::At(at, action) => {
                    of_group.driver.pending = Some((at.as_nanos(), action));
                    return ways.post.schedule(at.as_nanos(), rank);
                }
                // Nothing to wait for: what becomes of a transfer is the flow's affair.
                Step::Await | Step::End => return,
            }
        }
    }

    /// Gives a group's action to an idle flow.
    fn give(&mut self, ways: &mut Ways<'_>, number: u32, now: u64, action: Action) {
        let of_group = &mut self.applications.of_groups[number as usize];
        match of_group.idle.pop() {
            Some(Reverse(flow)) => {
                self.perform(ways, flow, now, action);
                self.settle(flow);
            }
            None => self.measures.requests.refused.push((of_group.group, now)),
        }
    }

    fn perform(&mut self, ways: &mut Ways<'_>, flow: u32, now: u64, action: Action) {
        match action {
            Action::Write(bytes) => {
                let application = self.application(flow);
                let message = Message { bytes, number: application.messages, created_at: instant(now) };
                application.messages += 1;
                self.write(ways, flow, now, message);
            }
            Action::Transfer { bytes, fresh, connection } => {
                let flow = flow + connection;
                let application = self.application(flow);
                application.request = Some(Request { bytes, at: now, first_at: None });
                if fresh && application.open {
                    self.open_again(ways, flow);
                }
                self.transfer(ways, flow, now, bytes);
            }
            Action::BeginPage => self.application(flow).page_at = Some(now),
            Action::EndPage => {
                let number = self.flows[flow as usize].application as usize;
                let applications = &mut self.applications.of_flows[number..];
                let connections = &applications[..applications[0].connections as usize];
                let delivered_at = connections.iter().map(|connection| connection.delivered_at).fold(0, u64::max);
                let first = &mut applications[0];
                if let Some(asked_at) = first.page_at.take()
                    && first.tells
                {
                    self.measures.requests.pages.push(Served {
                        flow,
                        bytes: 0,
                        asked_at,
                        first_at: None,
                        delivered_at,
                    });
                }
            }
        }
    }

    /// What the flow's source wrote before `until` while it slept is offered to the sender.
    pub(super) fn offer_slept(&mut self, ways: &Ways<'_>, flow: u32, until: u64) {
        let state = &mut self.flows[flow as usize];
        let Some(application) = self.applications.of_flows.get_mut(state.application as usize) else { return };
        let Some(driver) = application.driver.as_mut().filter(|_| application.sleeps) else { return };
        while let Some((at, Action::Write(bytes))) = driver.pending.take_if(|(at, _)| *at < until) {
            let config = ways.configs[state.group as usize];
            state.sender.offer(config, instant(at), Bytes(u64::from(bytes)));
            if let Step::At(next, action) = driver.next(at) {
                driver.pending = Some((next.as_nanos().max(at), action));
            }
        }
    }

    /// The flow's sender has done what it had to do: its source sleeps no longer if the next write may change
    /// something.
    pub(super) fn wake(&mut self, ways: &mut Ways<'_>, flow: u32) {
        let state = &self.flows[flow as usize];
        let number = state.application;
        let Some(application) = self.applications.of_flows.get_mut(number as usize) else { return };
        if application.sleeps && !state.holds_offers() {
            application.sleeps = false;
            if let Some((at, _)) = application.driver.as_ref().and_then(|driver| driver.pending) {
                ways.post.schedule(at, ways.post.ranks.application + number);
            }
        }
    }

    /// Puts a new connection in place of the flow's, which has delivered all.
    fn open_again(&mut self, ways: &mut Ways<'_>, flow: u32) {
        let state = &mut self.flows[flow as usize];
        let sink = &mut ways.sinks[flow as usize];
        let application = &mut self.applications.of_flows[state.application as usize];
        application.open = false;
        application.retired.add(&state.done(&self.agents, sink));
        state.epoch = next_epoch(state.epoch);
        sink.epoch = state.epoch;
        self.renew(ways, flow);
    }

    /// The flow's application has something to send: whether its connection opens now.
    pub(super) fn opens(&mut self, flow: u32) -> bool {
        !std::mem::replace(&mut self.application(flow).open, true)
    }

    /// Something was acknowledged: the application's request may be complete.
    pub(super) fn on_progress(&mut self, ways: &mut Ways<'_>, flow: u32, now: u64) {
        if self.expects(flow) && self.settle(flow) {
            let connection = self.application(flow).connection;
            self.advance(ways, flow - connection, now);
        }
    }

    /// Whether something that was asked for on the flow's connection has not been delivered.
    fn expects(&mut self, flow: u32) -> bool {
        let application = self.application(flow);
        application.request.is_some() || (application.waits && application.connections == 1)
    }

    /// Whether all that the application asked for has been delivered; then its request is closed.
    fn settle(&mut self, flow: u32) -> bool {
        let state = &self.flows[flow as usize];
        if !state.is_idle(&self.agents) {
            return false;
        }
        let number = state.application as usize;
        let application = &mut self.applications.of_flows[number];
        let (connection, request) = (application.connection, application.request.take());
        if let Some(Request { bytes, at, first_at }) = request {
            let delivered_at = application.delivered_at;
            if application.tells {
                self.measures.requests.transfers.push(Served { flow, bytes, asked_at: at, first_at, delivered_at });
            }
            if let Some(of_group) = self.applications.of_groups.get_mut(application.group as usize)
                && application.running
            {
                of_group.idle.push(Reverse(flow));
            }
        }
        let first = &mut self.applications.of_flows[number - connection as usize];
        first.waits = false;
        if let (Some(driver), Some(_)) = (&mut first.driver, request) {
            driver.source.on_delivered(connection);
        }
        true
    }
}
