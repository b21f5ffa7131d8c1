//! Two halves of a run, on a thread each. One takes ports and lone receivers through a superstep, the other the
//! senders, the applications, and the ports that nothing but acknowledgements pass.
//!
//! Nothing that happens at a place can be felt at another before the superstep is over, so the halves go through it
//! without each other. Each has ways of its own: a lane, a receiver, a link that packets pass on a lane belong to
//! whoever sends packets there, always the same half. What a half posts to a place of the other waits with a stand-in
//! for that until the superstep opens in which it lies. At moments that concern all, one thread acts alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use aqumen_network::port::Port;
use aqumen_scenario::Plan;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::batch::Turn;
use super::hosts::Hosts;
use super::ports::Ports;
use super::post::Post;
use super::ways::Ways;
use crate::event::Event;
use crate::{Error, Places, Progress};

/// The half that has the senders, and what tells the halves apart.
pub(super) struct Half<'a> {
    pub(super) ways: Ways<'a>,
    ports: Ports,
    /// Whether each port is in this half.
    has_port: Vec<bool>,
    /// The places of ports in the other half and in this one, and the port of each.
    there: Vec<(usize, u32)>,
    here: Vec<(usize, u32)>,
    /// The place of the applications, if there is one.
    hosts: Option<usize>,
    /// In a shorter time too little happens for two threads, nanoseconds.
    short: u64,
    /// The halves have gone so far.
    now: u64,
}

/// Fewer events are not worth the time in which a thread learns that it has something to do.
const LEAST_EVENTS: f64 = 256.0;

/// The shortest time in which enough happens for two threads, nanoseconds.
fn short(post: &Post) -> u64 {
    (LEAST_EVENTS * 1e9 / post.rate) as u64
}

/// Whether the run of `plan` can be parted into halves, and it pays where that decides.
pub(super) fn is_worth_it(plan: &Plan, ways: &Ways<'_>, places: Places) -> bool {
    let short = short(&ways.post);
    let pays = || ways.post.superstep_of(short) == 0 && short <= plan.sample_interval.as_nanos();
    // What an application asks of a receiver has to be asked of that of its own half.
    let mut hosted = (0..plan.flows.len() as u32).filter(|&flow| !ways.post.is_lone_receiver(flow));
    (places != Places::Paying || pays())
        && ways.post.parts_ports_from_ends()
        && hosted.all(|flow| !ways.lanes.ends_promptly(flow))
}

impl<'a> Half<'a> {
    /// The half with the ends of `plan`, whose run goes by `ways` and `ports` alone so far. Here are the same anew.
    ///
    /// Two threads are used whatever happens in how short a time, if `places` are not those that pay.
    pub(super) fn part(
        plan: &Plan,
        places: Places,
        (ways, ports): (&mut Ways<'a>, &mut Ports),
        mut anew: (Ways<'a>, Ports),
    ) -> Self {
        let mut carries_data = vec![false; plan.links.len()];
        plan.flows.iter().flat_map(|flow| &flow.path).for_each(|&link| carries_data[link as usize] = true);
        let has_port: Vec<bool> = ports.links.iter().map(|&link| !carries_data[link as usize]).collect();
        let is_here = |&(_, port): &(usize, u32)| has_port[port as usize];
        let alone = ways.post.places.iter().enumerate();
        let alone = alone.filter_map(|(place, of)| Some((place, of.only_port?)));
        let (here, there): (Vec<_>, Vec<_>) = alone.partition(is_here);
        let short = if places == Places::Paying { short(&ways.post) } else { 0 };
        ways.post.senders.stand_in();
        (anew.0.acks, anew.0.packets) = (ways.acks.share(), ways.packets.share());
        let hosts = ways.post.of_hosts();
        Half { ways: anew.0, ports: anew.1, has_port, there, here, hosts, short, now: 0 }
    }

    /// The port of this number, if it is in this half.
    pub(super) fn port(&mut self, number: usize) -> Option<&mut Port<Event>> {
        self.has_port[number].then_some(&mut self.ports.all[number])
    }

    /// The AQM's timer of a port may be due at another moment than it was.
    pub(super) fn arm(&mut self, ports: &mut Ports, ways: &mut Ways<'_>, number: u32) {
        if self.has_port[number as usize] { self.ports.arm(&mut self.ways, number) } else { ports.arm(ways, number) }
    }

    /// When something is due at a port of this half, packets apart.
    pub(super) fn due(&self) -> u64 {
        self.ports.due()
    }

    /// `superstep` opens; `post` is the other half's.
    pub(super) fn open(&mut self, post: &mut Post, superstep: u64) {
        self.ways.post.senders.inbox.admit(&mut post.senders.inbox, superstep);
        post.receivers.admit(&mut self.ways.post.receivers, superstep);
        let end = post.end_of(superstep);
        let (theirs, ours) = (&mut post.places, &mut self.ways.post.places);
        let here = self.here.iter().map(|&(place, _)| place).chain(self.hosts);
        here.for_each(|place| ours[place].admit(&mut theirs[place], end));
        self.there.iter().for_each(|&(place, _)| theirs[place].admit(&mut ours[place], end));
        self.ways.post.open(superstep);
        post.open(superstep);
    }

    /// Both halves, of which the other is `ways` and `ports`, go on up to, not including, the turn of `until`; so do
    /// lone ends, if `with_lone`. How many events that is.
    pub(super) fn run(
        &mut self,
        (ways, ports): (&mut Ways<'_>, &mut Ports),
        hosts: &mut Hosts<'_>,
        until: Turn,
        with_lone: bool,
    ) -> u64 {
        let short = until.0.saturating_sub(self.now) <= self.short;
        self.now = until.0;
        let Half { ways: own_ways, ports: own_ports, here, there, hosts: of_hosts, .. } = self;
        let mut of_ports = || {
            let done = ports.run_places(ways, there, until);
            done + if with_lone { ways.run_receivers(until.0) } else { 0 }
        };
        let mut of_ends = || {
            let mut done = own_ports.run_places(own_ways, here, until);
            done += of_hosts.map_or(0, |place| hosts.run_place(own_ways, place, until));
            done + if with_lone { hosts.run_senders(own_ways, until.0) } else { 0 }
        };
        let (of_ports, of_ends) = if short { (of_ports(), of_ends()) } else { together(of_ports, of_ends) };
        of_ports + of_ends
    }

    /// The ways of this half; its ports go among `ports`.
    pub(super) fn leave(mut self, ports: &mut Ports) -> Ways<'a> {
        let all = ports.all.iter_mut().zip(&mut self.ports.all).zip(&self.has_port);
        all.filter(|(_, is_here)| **is_here).for_each(|((port, own), _)| std::mem::swap(port, own));
        self.ways
    }
}

/// Does both at a time. Who is done first waits for the other awake, for as long as a superstep may take: a thread that
/// sleeps takes as long to wake up, and may do so where the other one runs.
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

/// Looks so often whether the other half is done: some tenths of a millisecond.
const LOOKS: u32 = 1 << 14;

fn wait_for(done: &AtomicBool) {
    for _ in 0..LOOKS {
        if done.load(Ordering::Acquire) {
            return;
        }
        std::hint::spin_loop();
    }
}

/// Two threads, if they are to be had.
pub(super) fn threads() -> Option<ThreadPool> {
    ThreadPoolBuilder::new().num_threads(2).build().ok()
}

/// Does the `work` of a run on `threads`, while this one tells its progress.
pub(super) fn on(
    threads: &ThreadPool,
    progress: &mut dyn Progress,
    work: impl FnOnce(&mut dyn Progress) -> Result<(), Error> + Send,
) -> Result<(), Error> {
    let ((tell, told), (reply, replies)) = (channel(), channel());
    let mut done = Ok(());
    threads.in_place_scope(|scope| {
        scope.spawn(|_| {
            done = work(&mut move |fraction: f64| tell.send(fraction).is_ok() && replies.recv().unwrap_or(false));
        });
        // Until the work is over, or does not listen any more.
        for fraction in told {
            if reply.send(progress.at(fraction)).is_err() {
                break;
            }
        }
    });
    done
}
