//! Applications: traffic sources that tell flows what to send, and their requests.
//!
//! A source belongs to one flow or to a group. Each transfer of a group's source takes an idle flow of the group, and
//! is refused if there is none.
//!
//! Writes to a TCP sender with a full window change nothing until the sender's next event. A source that only writes
//! then *sleeps*: its writes have no events, and are offered to the sender, each with its own time, before that event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqumen_result::CompletedRequest;
use aqumen_scenario::Traffic;
use aqumen_scenario::traffic::Scope;
use aqumen_traffic::{Action, Step};
use aqumen_transport::Message;
use aqumen_transport::tcp::Sender;
use aqumen_units::Bytes;

use super::application::{Driver, FlowApplication, GroupApplication, Request};
use super::dispatch::Dispatcher;
use super::hosts::{Hosts, NONE};
use super::moment::instant;
use super::totals::FlowTotal;
use crate::event::next_generation;

impl Hosts<'_> {
    /// Makes the applications. `may_sleep`: sources may sleep while their writes have no effect.
    pub(super) fn add_applications(&mut self, dispatcher: &Dispatcher<'_>, may_sleep: bool) {
        for (number, group) in self.plan.groups.iter().enumerate() {
            if group.traffic == Traffic::Bulk {
                continue;
            }
            let driver = |plan, flow| Some(Driver::new(plan, aqumen_traffic::build(&group.traffic)?, flow));
            let shared = group.traffic.scope() == Scope::Group;
            let connections = group.traffic.connections();
            let may_sleep = may_sleep && !group.traffic.has_requests();
            for flow in group.flows.clone() {
                let connection = (flow - group.flows.start) % connections;
                let state = &mut self.flows[flow as usize];
                state.application = self.applications.of_flows.len() as u32;
                state.sender = Sender::new(dispatcher.configs[number], Some(Bytes(0)));
                self.applications.of_flows.push(FlowApplication {
                    flow,
                    driver: if shared || connection > 0 { None } else { driver(self.plan, flow) },
                    group: if shared { self.applications.of_groups.len() as u32 } else { NONE },
                    connection,
                    connections,
                    running: false,
                    may_sleep,
                    sleeps: false,
                    waits: false,
                    tells: group.transport.reports_delivery(),
                    open: false,
                    request: None,
                    page_at: None,
                    delivered_at: 0,
                    messages: 0,
                    retired: FlowTotal::NOTHING,
                });
            }
            if shared && let Some(driver) = driver(self.plan, group.flows.start) {
                self.applications.of_groups.push(GroupApplication {
                    driver,
                    running: false,
                    idle: BinaryHeap::new(),
                    group: number as u32,
                });
            }
        }
    }

    fn application(&mut self, flow: u32) -> &mut FlowApplication {
        &mut self.applications.of_flows[self.flows[flow as usize].application as usize]
    }

    /// Starts or resumes the flow's application. A group's application starts with its first flow.
    pub(super) fn start_application(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, now: u64) {
        let application = self.application(flow);
        application.running = true;
        let (group, busy, waits) = (application.group, application.request.is_some(), application.waits);
        if group == NONE {
            let planned = application.driver.as_mut().and_then(|driver| driver.pending.take_if(|(at, _)| *at <= now));
            if let Some((_, action)) = planned {
                self.perform(dispatcher, flow, now, action);
            } else if application.driver.as_ref().is_some_and(|driver| driver.pending.is_some()) {
                return;
            }
            // The delivery that it waits for may still be in flight.
            if !waits {
                self.advance(dispatcher, flow, now);
            }
            return;
        }
        let of_group = &mut self.applications.of_groups[group as usize];
        if !busy {
            of_group.idle.push(Reverse(flow));
        }
        if !of_group.running {
            of_group.running = true;
            self.advance_group(dispatcher, group, now);
        }
    }

    /// Stops the flow's application; its requests continue. A group's application stops with its first flow.
    pub(super) fn stop_application(&mut self, dispatcher: &Dispatcher<'_>, flow: u32, now: u64) {
        self.offer_deferred(dispatcher, flow, now);
        let application = self.application(flow);
        (application.running, application.sleeps) = (false, false);
        let group = application.group;
        if let Some(driver) = &mut application.driver {
            // The source's clock plans packets anew. A transfer or a page has begun for its source: it comes late.
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

    /// Carries out an application's action at its time.
    pub(super) fn on_application(&mut self, dispatcher: &mut Dispatcher<'_>, now: u64, number: u32) {
        let flows = self.applications.of_flows.len() as u32;
        let driver = match self.applications.of_flows.get_mut(number as usize) {
            Some(application) if !application.running => None,
            Some(application) => application.driver.as_mut(),
            None => Some(&mut self.applications.of_groups[(number - flows) as usize].driver),
        };
        // A stopped application has no action pending, a resumed one a later action.
        let Some(action) = driver.and_then(|driver| driver.pending.take_if(|(at, _)| *at == now)) else { return };
        if number < flows {
            let flow = self.applications.of_flows[number as usize].flow;
            self.perform(dispatcher, flow, now, action.1);
            self.advance(dispatcher, flow, now);
        } else {
            self.give(dispatcher, number - flows, now, action.1);
            self.advance_group(dispatcher, number - flows, now);
        }
    }

    /// Carries out a flow's actions until the next one lies ahead.
    fn advance(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, now: u64) {
        loop {
            let number = self.flows[flow as usize].application;
            let application = &mut self.applications.of_flows[number as usize];
            let Some(driver) = application.driver.as_mut().filter(|_| application.running) else { return };
            if let Some(rate) = self.flows[flow as usize].rate_bps(&self.agents) {
                driver.source.on_rate(rate);
            }
            match driver.next(now) {
                Step::At(at, action) if at <= instant(now) => self.perform(dispatcher, flow, now, action),
                Step::At(at, action) => {
                    driver.pending = Some((at.as_nanos(), action));
                    application.sleeps = application.may_sleep && self.flows[flow as usize].holds_offers();
                    if !application.sleeps {
                        dispatcher
                            .mailboxes
                            .schedule(at.as_nanos(), dispatcher.mailboxes.priorities.application + number);
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

    fn advance_group(&mut self, dispatcher: &mut Dispatcher<'_>, number: u32, now: u64) {
        loop {
            let priority =
                dispatcher.mailboxes.priorities.application + self.applications.of_flows.len() as u32 + number;
            let of_group = &mut self.applications.of_groups[number as usize];
            if !of_group.running {
                return;
            }
            match of_group.driver.next(now) {
                Step::At(at, action) if at <= instant(now) => self.give(dispatcher, number, now, action),
                Step::At(at, action) => {
                    of_group.driver.pending = Some((at.as_nanos(), action));
                    return dispatcher.mailboxes.schedule(at.as_nanos(), priority);
                }
                // An open loop does not wait for its transfers.
                Step::Await | Step::End => return,
            }
        }
    }

    /// Assigns a group's action to an idle flow.
    fn give(&mut self, dispatcher: &mut Dispatcher<'_>, number: u32, now: u64, action: Action) {
        let of_group = &mut self.applications.of_groups[number as usize];
        match of_group.idle.pop() {
            Some(Reverse(flow)) => {
                self.perform(dispatcher, flow, now, action);
                self.settle(flow);
            }
            None => self.measures.requests.refused.push((of_group.group, now)),
        }
    }

    fn perform(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, now: u64, action: Action) {
        match action {
            Action::Write(bytes) => {
                let application = self.application(flow);
                let message = Message { bytes, number: application.messages, created_at: instant(now) };
                application.messages += 1;
                self.write(dispatcher, flow, now, message);
            }
            Action::Transfer { bytes, fresh, connection } => {
                let flow = flow + connection;
                let application = self.application(flow);
                application.request = Some(Request { bytes, at: now, first_at: None });
                if fresh && application.open {
                    self.open_again(dispatcher, flow);
                }
                self.transfer(dispatcher, flow, now, bytes);
            }
            Action::BeginPage => self.application(flow).page_at = Some(now),
            Action::EndPage => {
                let number = self.flows[flow as usize].application as usize;
                let applications = &mut self.applications.of_flows[number..];
                let connections = &applications[..applications[0].connections as usize];
                let delivered_at = connections.iter().map(|connection| connection.delivered_at).fold(0, u64::max);
                let first = &mut applications[0];
                if let Some(requested_at) = first.page_at.take()
                    && first.tells
                {
                    self.measures.requests.pages.push(CompletedRequest {
                        flow,
                        bytes: 0,
                        requested_at,
                        first_at: None,
                        delivered_at,
                    });
                }
            }
        }
    }

    /// Offers the writes of a sleeping source before `until` to the sender.
    pub(super) fn offer_deferred(&mut self, dispatcher: &Dispatcher<'_>, flow: u32, until: u64) {
        let state = &mut self.flows[flow as usize];
        let Some(application) = self.applications.of_flows.get_mut(state.application as usize) else { return };
        let Some(driver) = application.driver.as_mut().filter(|_| application.sleeps) else { return };
        let config = dispatcher.configs[state.group as usize];
        while let Some((at, Action::Write(bytes))) = driver.pending.take_if(|(at, _)| *at < until) {
            let (writes, next) = driver.source.repeat(instant(at), bytes, instant(until), &mut driver.rng);
            state.sender.offer_held(config, writes, Bytes(u64::from(bytes)));
            if let Step::At(at, action) = next {
                driver.pending = Some((at.as_nanos(), action));
            }
        }
    }

    /// Wakes the source after an event of the sender, if the next write may change something.
    pub(super) fn wake(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32) {
        let state = &self.flows[flow as usize];
        let number = state.application;
        let Some(application) = self.applications.of_flows.get_mut(number as usize) else { return };
        if application.sleeps && !state.holds_offers() {
            application.sleeps = false;
            if let Some((at, _)) = application.driver.as_ref().and_then(|driver| driver.pending) {
                dispatcher.mailboxes.schedule(at, dispatcher.mailboxes.priorities.application + number);
            }
        }
    }

    /// Replaces the flow's connection, which has delivered everything, by a new one.
    fn open_again(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32) {
        let state = &mut self.flows[flow as usize];
        let sink = &mut dispatcher.sinks[flow as usize];
        let application = &mut self.applications.of_flows[state.application as usize];
        application.open = false;
        application.retired.add(&state.done(&self.agents, sink));
        state.generation = next_generation(state.generation);
        sink.generation = state.generation;
        self.renew(dispatcher, flow);
    }

    /// Opens the flow's connection for its application; returns whether it was closed.
    pub(super) fn opens(&mut self, flow: u32) -> bool {
        !std::mem::replace(&mut self.application(flow).open, true)
    }

    /// Checks after an acknowledgement whether the application's request is complete.
    pub(super) fn on_progress(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, now: u64) {
        if self.expects(flow) && self.settle(flow) {
            let connection = self.application(flow).connection;
            self.advance(dispatcher, flow - connection, now);
        }
    }

    /// Returns whether a request on the flow's connection is not complete.
    fn expects(&mut self, flow: u32) -> bool {
        let application = self.application(flow);
        application.request.is_some() || (application.waits && application.connections == 1)
    }

    /// Closes the application's request if it is complete; returns whether it is.
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
                self.measures.requests.transfers.push(CompletedRequest {
                    flow,
                    bytes,
                    requested_at: at,
                    first_at,
                    delivered_at,
                });
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
