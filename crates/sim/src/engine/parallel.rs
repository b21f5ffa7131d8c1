//! A run on two threads. The first worker handles ports and bulk receivers, the second one senders, applications, and
//! ports that only acknowledgements cross.
//!
//! No event affects another process within its epoch, so the workers run an epoch independently. Each has a dispatcher:
//! a leg, a receiver, or a link on a leg belongs to the worker that sends packets there. Messages for a process of the
//! other worker wait in a local copy of that process until their epoch opens. One thread alone handles the events that
//! concern all processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use aqumen_scenario::Plan;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::batch::EventKey;
use super::dispatch::Dispatcher;
use super::hosts::Hosts;
use super::mailboxes::Mailboxes;
use super::ports::Ports;
use super::worker::Worker;
use crate::{Error, Partitioning, Progress};

/// Two threads, and whether a stretch of time pays for them.
#[derive(Clone)]
pub(super) struct Threads {
    pool: Arc<ThreadPool>,
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

/// Divides the processes between `first`, which has all of them, and a second worker, which is made of fresh copies of
/// the dispatcher and the ports.
pub(super) fn divide<'a>(plan: &Plan, first: &mut Worker<'a>, copies: (Dispatcher<'a>, Ports)) -> Worker<'a> {
    let mut second = Worker::new(copies.0, copies.1);
    let mut carries_data = vec![false; plan.links.len()];
    plan.flows.iter().flat_map(|flow| &flow.path).for_each(|&link| carries_data[link as usize] = true);
    first.has_port = first.ports.links.iter().map(|&link| carries_data[link as usize]).collect();
    second.has_port = first.has_port.iter().map(|has| !has).collect();
    for worker in [&mut *first, &mut second] {
        let Worker { dispatcher, processes, has_port, .. } = worker;
        let port_of = |process: &usize| dispatcher.mailboxes.processes[*process].only_port;
        processes.retain(|process| port_of(process).is_some_and(|port| has_port[port as usize]));
    }
    (first.has_hosts, second.has_receivers) = (false, false);
    second.processes.extend(second.dispatcher.mailboxes.hosts_process());
    first.dispatcher.mailboxes.senders.stand_in();
    (second.dispatcher.acks, second.dispatcher.packets) =
        (first.dispatcher.acks.share(), first.dispatcher.packets.share());
    second
}

/// Delivers the messages that each worker holds for the other one's processes, when `epoch` opens.
pub(super) fn exchange(first: &mut Worker<'_>, second: &mut Worker<'_>, epoch: u64) {
    let (ours, theirs) = (&mut first.dispatcher.mailboxes, &mut second.dispatcher.mailboxes);
    theirs.senders.mailbox.admit(&mut ours.senders.mailbox, epoch);
    ours.receivers.admit(&mut theirs.receivers, epoch);
    let end = ours.end_of(epoch);
    for &process in &second.processes {
        theirs.processes[process].admit(&mut ours.processes[process], end);
    }
    for &process in &first.processes {
        ours.processes[process].admit(&mut theirs.processes[process], end);
    }
}

impl Threads {
    /// Returns two threads for `plan`, if the system grants them. Unless `processes` is [`Partitioning::Paying`], they
    /// are used however few events there are.
    pub(super) fn new(mailboxes: &Mailboxes, processes: Partitioning) -> Option<Self> {
        let short = if processes == Partitioning::Paying { short(mailboxes) } else { 0 };
        let pool = ThreadPoolBuilder::new().num_threads(2).build().ok()?;
        Some(Threads { pool: Arc::new(pool), short, now: 0 })
    }

    /// Runs both workers up to the key `until`, exclusive; see [`Worker::run`].
    pub(super) fn run(
        &mut self,
        (first, second): (&mut Worker<'_>, &mut Worker<'_>),
        hosts: &mut Hosts<'_>,
        until: EventKey,
        with_bulk: bool,
    ) -> u64 {
        let short = until.0.saturating_sub(self.now) <= self.short;
        self.now = until.0;
        let mut of_first = || first.run(None, until, with_bulk);
        let mut of_second = || second.run(Some(hosts), until, with_bulk);
        let (one, other) = if short { (of_first(), of_second()) } else { together(of_first, of_second) };
        one + other
    }

    /// Returns the number of threads.
    pub(super) fn count(&self) -> usize {
        self.pool.current_num_threads()
    }

    pub(super) fn pool(&self) -> Arc<ThreadPool> {
        Arc::clone(&self.pool)
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

/// Runs `work` on the threads of `pool`, while the calling thread reports its progress.
pub(super) fn on(
    pool: &ThreadPool,
    progress: &mut dyn Progress,
    work: impl FnOnce(&mut dyn Progress) -> Result<(), Error> + Send,
) -> Result<(), Error> {
    let ((sender, fractions), (reply, replies)) = (channel(), channel());
    let mut done = Ok(());
    pool.in_place_scope(|scope| {
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
