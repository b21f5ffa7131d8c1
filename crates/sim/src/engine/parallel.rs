//! A run on two threads. The first worker handles ports and bulk receivers, the second one senders, applications, and
//! ports that only acknowledgements cross.
//!
//! No event affects another process within its epoch, so the workers run an epoch independently. Each has a dispatcher:
//! a leg, a receiver, or a link on a leg belongs to the worker that sends packets there. Messages for a process of the
//! other worker wait in a local copy of that process until their epoch opens. One thread alone handles the events that
//! concern all processes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use aqumen_network::port::Port;
use aqumen_scenario::Plan;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::batch::EventKey;
use super::dispatch::Dispatcher;
use super::hosts::Hosts;
use super::mailboxes::Mailboxes;
use super::ports::Ports;
use crate::event::Event;
use crate::{Error, Partitioning, Progress};

/// The second worker, and the division of the processes between the workers.
pub(super) struct Worker<'a> {
    pub(super) dispatcher: Dispatcher<'a>,
    ports: Ports,
    /// Whether each port belongs to this worker.
    has_port: Vec<bool>,
    /// Processes of the first worker's ports, with the port of each.
    there: Vec<(usize, u32)>,
    /// Processes of this worker's ports, with the port of each.
    here: Vec<(usize, u32)>,
    /// Process of the applications, if there is one.
    hosts: Option<usize>,
    /// Shortest time that pays for two threads, nanoseconds.
    short: u64,
    /// Time that the workers have reached.
    now: u64,
}

/// Least number of events that pays for waking a thread.
const LEAST_EVENTS: f64 = 256.0;

/// Returns the shortest time that pays for two threads, nanoseconds.
fn short(mailboxes: &Mailboxes) -> u64 {
    (LEAST_EVENTS * 1e9 / mailboxes.rate) as u64
}

/// Returns whether `plan` can run on two workers, and whether that pays where `processes` leaves the choice.
pub(super) fn is_worth_it(plan: &Plan, dispatcher: &Dispatcher<'_>, processes: Partitioning) -> bool {
    let short = short(&dispatcher.mailboxes);
    let pays = || dispatcher.mailboxes.epoch_of(short) == 0 && short <= plan.sample_interval.as_nanos();
    // An application reads the receiver of its own worker.
    let mut hosted = (0..plan.flows.len() as u32).filter(|&flow| !dispatcher.mailboxes.is_bulk_receiver(flow));
    (processes != Partitioning::Paying || pays())
        && dispatcher.mailboxes.separates_ports_from_endpoints()
        && hosted.all(|flow| !dispatcher.paths.has_inline_receiver(flow))
}

impl<'a> Worker<'a> {
    /// Makes the second worker of `plan` from fresh copies of the first worker's dispatcher and ports.
    ///
    /// Unless `processes` is [`Partitioning::Paying`], two threads are used however few events there are.
    pub(super) fn part(
        plan: &Plan,
        processes: Partitioning,
        (dispatcher, ports): (&mut Dispatcher<'a>, &mut Ports),
        mut anew: (Dispatcher<'a>, Ports),
    ) -> Self {
        let mut carries_data = vec![false; plan.links.len()];
        plan.flows.iter().flat_map(|flow| &flow.path).for_each(|&link| carries_data[link as usize] = true);
        let has_port: Vec<bool> = ports.links.iter().map(|&link| !carries_data[link as usize]).collect();
        let is_here = |&(_, port): &(usize, u32)| has_port[port as usize];
        let alone = dispatcher.mailboxes.processes.iter().enumerate();
        let alone = alone.filter_map(|(process, of)| Some((process, of.only_port?)));
        let (here, there): (Vec<_>, Vec<_>) = alone.partition(is_here);
        let short = if processes == Partitioning::Paying { short(&dispatcher.mailboxes) } else { 0 };
        dispatcher.mailboxes.senders.stand_in();
        (anew.0.acks, anew.0.packets) = (dispatcher.acks.share(), dispatcher.packets.share());
        let hosts = dispatcher.mailboxes.hosts_process();
        Worker { dispatcher: anew.0, ports: anew.1, has_port, there, here, hosts, short, now: 0 }
    }

    /// Returns the port of this number, if it belongs to this worker.
    pub(super) fn port(&mut self, number: usize) -> Option<&mut Port<Event>> {
        self.has_port[number].then_some(&mut self.ports.all[number])
    }

    /// Schedules the timer of a port's AQM anew.
    pub(super) fn arm(&mut self, ports: &mut Ports, dispatcher: &mut Dispatcher<'_>, number: u32) {
        if self.has_port[number as usize] {
            self.ports.arm(&mut self.dispatcher, number)
        } else {
            ports.arm(dispatcher, number)
        }
    }

    /// Returns the time of the next timer or end of service at a port of this worker.
    pub(super) fn due(&self) -> u64 {
        self.ports.due()
    }

    /// Opens `epoch` for both workers; `mailboxes` are the first worker's.
    pub(super) fn open(&mut self, mailboxes: &mut Mailboxes, epoch: u64) {
        self.dispatcher.mailboxes.senders.mailbox.admit(&mut mailboxes.senders.mailbox, epoch);
        mailboxes.receivers.admit(&mut self.dispatcher.mailboxes.receivers, epoch);
        let end = mailboxes.end_of(epoch);
        let (theirs, ours) = (&mut mailboxes.processes, &mut self.dispatcher.mailboxes.processes);
        let here = self.here.iter().map(|&(process, _)| process).chain(self.hosts);
        here.for_each(|process| ours[process].admit(&mut theirs[process], end));
        self.there.iter().for_each(|&(process, _)| theirs[process].admit(&mut ours[process], end));
        self.dispatcher.mailboxes.open(epoch);
        mailboxes.open(epoch);
    }

    /// Runs both workers up to the key `until`, exclusive, with bulk endpoints if `with_bulk`. The first worker is
    /// given by its dispatcher and ports. Returns the number of events.
    pub(super) fn run(
        &mut self,
        (dispatcher, ports): (&mut Dispatcher<'_>, &mut Ports),
        hosts: &mut Hosts<'_>,
        until: EventKey,
        with_bulk: bool,
    ) -> u64 {
        let short = until.0.saturating_sub(self.now) <= self.short;
        self.now = until.0;
        let Worker { dispatcher: own_dispatcher, ports: own_ports, here, there, hosts: of_hosts, .. } = self;
        let mut of_ports = || {
            let done = ports.run_processes(dispatcher, there, until);
            done + if with_bulk { dispatcher.run_receivers(until.0) } else { 0 }
        };
        let mut of_ends = || {
            let mut done = own_ports.run_processes(own_dispatcher, here, until);
            done += of_hosts.map_or(0, |process| hosts.run_process(own_dispatcher, process, until));
            done + if with_bulk { hosts.run_senders(own_dispatcher, until.0) } else { 0 }
        };
        let (of_ports, of_ends) = if short { (of_ports(), of_ends()) } else { together(of_ports, of_ends) };
        of_ports + of_ends
    }

    /// Moves this worker's ports into `ports`, and returns its dispatcher.
    pub(super) fn leave(mut self, ports: &mut Ports) -> Dispatcher<'a> {
        let all = ports.all.iter_mut().zip(&mut self.ports.all).zip(&self.has_port);
        all.filter(|(_, is_here)| **is_here).for_each(|((port, own), _)| std::mem::swap(port, own));
        self.dispatcher
    }
}

/// Runs both closures at once. The first one done spins for as long as an epoch may take: a sleeping thread takes as
/// long to wake up, and may wake on the other's core.
fn together<A: Send, B: Send>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B + Send) -> (A, B) {
    let (begun, one_done, other_done) = (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
    rayon::join(
        || {
            let answer = one();
            one_done.store(true, Ordering::Release);
            if begun.load(Ordering::Acquire) {
                wait_for(&other_done);
            }
            answer
        },
        || {
            begun.store(true, Ordering::Release);
            let answer = other();
            other_done.store(true, Ordering::Release);
            wait_for(&one_done);
            answer
        },
    )
}

/// Number of polls before a worker gives up spinning: some tenths of a millisecond.
const LOOKS: u32 = 1 << 14;

fn wait_for(done: &AtomicBool) {
    for _ in 0..LOOKS {
        if done.load(Ordering::Acquire) {
            return;
        }
        std::hint::spin_loop();
    }
}

/// Returns a pool of two threads, if the system grants them.
pub(super) fn threads() -> Option<ThreadPool> {
    ThreadPoolBuilder::new().num_threads(2).build().ok()
}

/// Runs `work` on `threads`, while the calling thread reports its progress.
pub(super) fn on(
    threads: &ThreadPool,
    progress: &mut dyn Progress,
    work: impl FnOnce(&mut dyn Progress) -> Result<(), Error> + Send,
) -> Result<(), Error> {
    let ((sender, fractions), (reply, replies)) = (channel(), channel());
    let mut done = Ok(());
    threads.in_place_scope(|scope| {
        scope.spawn(|_| {
            done = work(&mut move |fraction: f64| sender.send(fraction).is_ok() && replies.recv().unwrap_or(false));
        });
        // Until the work is over, or no longer waits for replies.
        for fraction in fractions {
            if reply.send(progress.at(fraction)).is_err() {
                break;
            }
        }
    });
    done
}
