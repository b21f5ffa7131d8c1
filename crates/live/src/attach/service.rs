//! Interface to the system: signals, the service manager, scheduling.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use aqumen_units::Span;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// SIGINT, SIGTERM and SIGHUP as a descriptor. They are blocked in this thread and in those that it creates.
#[derive(Debug)]
pub(crate) struct Signals {
    fd: OwnedFd,
    /// Whether the program was started from a terminal.
    terminal: bool,
}

/// Request of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    End,
    /// Read the options again.
    Reload,
}

/// Whether this process has a terminal, which may be closed later.
fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

impl Signals {
    pub(crate) fn take() -> io::Result<Self> {
        // SAFETY: the set is initialised by sigemptyset before it is read, and outlives the calls;
        // signalfd's descriptor is ours alone.
        unsafe {
            let mut set = std::mem::MaybeUninit::uninit();
            libc::sigemptyset(set.as_mut_ptr());
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            let error = libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
            if error != 0 {
                return Err(io::Error::from_raw_os_error(error));
            }
            match libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
                -1 => Err(io::Error::last_os_error()),
                fd => Ok(Signals { fd: OwnedFd::from_raw_fd(fd), terminal: has_terminal() }),
            }
        }
    }

    /// Waits for `time`, or for the request of a signal that comes first.
    pub(crate) fn wait(&self, time: &Timespec) -> Option<Request> {
        let fd: BorrowedFd<'_> = self.fd.as_fd();
        if !poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(time)).is_ok_and(|ready| ready > 0) {
            return None;
        }
        // struct signalfd_siginfo begins with the signal's number.
        let mut info = [0u8; 128];
        rustix::io::read(fd, &mut info).ok()?;
        let hangup = u32::from_ne_bytes([info[0], info[1], info[2], info[3]]) == libc::SIGHUP as u32;
        // Closing the terminal sends SIGHUP too.
        let closed = self.terminal && !has_terminal();
        Some(if hangup && !closed { Request::Reload } else { Request::End })
    }
}

/// Service manager, if one started the program and listens (sd_notify(3)).
#[derive(Debug)]
pub(crate) struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// Interval of watchdog notifications.
    pub(crate) watchdog: Option<Span>,
}

impl ServiceManager {
    pub(crate) fn from_environment() -> Self {
        let address = std::env::var("NOTIFY_SOCKET").ok().and_then(|name| match name.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name).ok(),
            None => SocketAddr::from_pathname(name).ok(),
        });
        let socket = address.and_then(|address| {
            let socket = UnixDatagram::unbound().ok()?;
            // Without blocking: the AQM does not wait for a manager that does not read.
            socket.set_nonblocking(true).ok()?;
            Some((socket, address))
        });
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        ServiceManager { socket, watchdog: watchdog(number("WATCHDOG_USEC"), number("WATCHDOG_PID")) }
    }

    /// Sends a notification; without a listener it is lost.
    pub(crate) fn notify(&self, state: &str) {
        if let Some((socket, address)) = &self.socket {
            let _ = socket.send_to_addr(state.as_bytes(), address);
        }
    }
}

/// Interval of watchdog notifications: half the manager's timeout, unless the watchdog is for another process.
fn watchdog(timeout_us: Option<u64>, process: Option<u64>) -> Option<Span> {
    let ours = process.is_none_or(|process| process == u64::from(std::process::id()));
    timeout_us.filter(|_| ours).map(|micros| Span::from_micros(micros / 2))
}

/// Scheduling policy: real time, not inherited by child threads.
const POLICY: libc::c_int = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;

/// Requests real-time scheduling and a precise timer. Without CAP_SYS_NICE steps come later under load, nothing else.
pub(crate) fn use_realtime_scheduling() {
    // struct sched_param of the kernel. The system call directly: the function of musl does nothing.
    let priority: libc::c_int = 1;
    // SAFETY: the priority outlives the call; both calls change how this thread is scheduled and nothing else.
    unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, POLICY, &raw const priority);
        libc::prctl(libc::PR_SET_TIMERSLACK, 1000);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn the_watchdog_is_notified_twice_per_timeout() {
        let own = u64::from(std::process::id());
        assert_eq!(watchdog(Some(40_000), None), Some(Span::from_millis(20)));
        assert_eq!(watchdog(Some(40_000), Some(own)), Some(Span::from_millis(20)));
        assert_eq!((watchdog(Some(40_000), Some(own + 1)), watchdog(None, None)), (None, None));
    }

    #[test]
    fn real_time_scheduling_is_not_inherited() {
        // SAFETY: zero is the calling thread; the call only reads.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let policies = move || {
            use_realtime_scheduling();
            (policy(), thread::spawn(policy).join().unwrap())
        };
        let (own, started) = thread::spawn(policies).join().unwrap();
        assert_eq!(started, libc::SCHED_OTHER);
        // CAP_SYS_NICE, which root may lack in a container.
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
        if u64::from_str_radix(effective.trim(), 16).unwrap() & (1 << 23) != 0 {
            assert_eq!(own, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK);
        }
    }
}
