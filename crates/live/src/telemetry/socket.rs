//! The local socket by which `status`, `detach` and `top` reach an attached aqumend.
//!
//! Its name is abstract: it belongs to the network namespace, as the device does, and ends with the process in every
//! case. It is unique, so that two aqumend never regulate one device. A request is one word on a line.

use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Duration;

use super::{SharedStatus, connections};
use crate::{Context, Error};

const PREFIX: &str = "aqumend/";
/// Half the time after which an aqumend counts as silent.
const ANSWER_TIME: Duration = Duration::from_secs(2);
/// Description of a silent aqumend.
const NO_ANSWER: &str = "it does not answer: it was stopped or hangs, and everything passes unregulated";

fn address(device: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{PREFIX}{device}"))
}

/// Reserves the name of `device`: while the listener lives, no other aqumend attaches to it.
pub(crate) fn listen(device: &str) -> Result<UnixListener, Error> {
    address(device).and_then(|address| UnixListener::bind_addr(&address)).map_err(|error| {
        if error.kind() == io::ErrorKind::AddrInUse {
            Error::setup(format!("{device}: another aqumend is attached already; see aqumend status {device}"))
        } else {
            Error::setup(format!("{device}: its socket: {error}"))
        }
    })
}

/// Answers requests until the process ends.
pub(crate) fn serve(listener: UnixListener, shared: Arc<SharedStatus>) {
    if listener.set_nonblocking(true).is_err() {
        return;
    }
    let accept = || {
        let (stream, _) = listener.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    };
    connections::serve(&listener, accept, |stream: &UnixStream, request| answer(request, stream, &shared));
}

/// The answer to a request, once its line is complete.
fn answer(request: &[u8], stream: &UnixStream, shared: &SharedStatus) -> Option<Vec<u8>> {
    let end = request.iter().position(|byte| *byte == b'\n')?;
    Some(match request[..end].trim_ascii() {
        b"status" => serde_json::to_vec(&shared.status()).unwrap_or_default(),
        b"detach" if may_detach(stream) => {
            shared.request_end();
            b"ok".to_vec()
        }
        b"detach" => b"only root and the user who attached may detach".to_vec(),
        _ => b"unknown request".to_vec(),
    })
}

/// Whether the peer may detach; any process of the namespace can connect.
fn may_detach(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid();
    rustix::net::sockopt::socket_peercred(stream).is_ok_and(|peer| peer.uid.is_root() || peer.uid == own)
}

/// Devices of this network namespace with an attached aqumend.
pub(crate) fn devices() -> Result<Vec<String>, Error> {
    let sockets =
        std::fs::read_to_string("/proc/thread-self/net/unix").context(|| "/proc/thread-self/net/unix".into())?;
    let names =
        sockets.lines().filter_map(|line| line.split_whitespace().nth(7)?.strip_prefix('@')?.strip_prefix(PREFIX));
    let mut devices: Vec<String> = names.map(str::to_owned).collect();
    // Open connections are listed too.
    devices.sort();
    devices.dedup();
    Ok(devices)
}

/// Answer of the aqumend of `device` to `request`; `None` if there is none.
pub(crate) fn ask(device: &str, request: &str) -> io::Result<Option<String>> {
    exchange(device, request).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => io::Error::new(io::ErrorKind::TimedOut, NO_ANSWER),
        _ => error,
    })
}

fn exchange(device: &str, request: &str) -> io::Result<Option<String>> {
    let mut stream = match UnixStream::connect_addr(&address(device)?) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(None),
        other => other?,
    };
    stream.set_read_timeout(Some(2 * ANSWER_TIME))?;
    writeln!(stream, "{request}")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(Some(text))
}

/// Whether `device` has no aqumend.
pub(crate) fn is_gone(device: &str) -> bool {
    address(device).and_then(|address| UnixStream::connect_addr(&address)).is_err()
}

#[cfg(test)]
mod tests {
    use super::super::{Sample, Status, Totals};
    use super::*;

    /// A device name that no other process has, with a status and a listener.
    fn attached(name: &str) -> (String, Arc<SharedStatus>, UnixListener) {
        let device = format!("{name}-{}", std::process::id());
        let shared = Arc::new(SharedStatus::default());
        shared.set_status(Status { device: device.clone(), aqm: "pi".into(), ..Status::default() });
        let listener = listen(&device).unwrap();
        (device, shared, listener)
    }

    #[test]
    fn requests_are_answered_and_the_owner_may_detach() {
        let (device, shared, listener) = attached("asked");
        shared.publish(Sample { t_s: 1.0, ..Sample::default() }, Totals { marked_pkts: 3, ..Totals::default() }, &[]);
        let own = shared.clone();
        std::thread::spawn(move || serve(listener, own));
        assert!(devices().unwrap().contains(&device) && !is_gone(&device));
        let status: serde_json::Value = serde_json::from_str(&ask(&device, "status").unwrap().unwrap()).unwrap();
        assert_eq!((&status["device"], &status["totals"]["marked_pkts"]), (&device.as_str().into(), &3.into()));
        assert_eq!(ask(&device, "dance").unwrap().unwrap(), "unknown request");
        assert!(!shared.is_end_requested());
        // This process is the owner.
        assert_eq!(ask(&device, "detach").unwrap().unwrap(), "ok");
        assert!(shared.is_end_requested());
    }

    #[test]
    fn idle_connections_do_not_block_requests() {
        let (device, shared, listener) = attached("idle");
        std::thread::spawn(move || serve(listener, shared));
        let idle: Vec<_> = (0..200).map(|_| UnixStream::connect_addr(&address(&device).unwrap()).unwrap()).collect();
        assert!(ask(&device, "status").unwrap().unwrap().contains(&device));
        drop(idle);
    }

    #[test]
    fn a_device_has_one_aqumend_and_its_name_goes_with_it() {
        let (device, _, listener) = attached("one");
        let second = listen(&device).unwrap_err().to_string();
        assert!(second.starts_with(&format!("{device}: another aqumend is attached already")), "{second}");
        drop(listener);
        assert!(is_gone(&device) && !devices().unwrap().contains(&device));
        assert_eq!(ask(&device, "status").unwrap(), None);
    }

    /// Runs `work` in a thread of the user `uid`.
    fn as_user<T: Send + 'static>(uid: u32, work: impl FnOnce() -> T + Send + 'static) -> std::thread::JoinHandle<T> {
        std::thread::spawn(move || {
            // SAFETY: the call by its number changes the identity of this thread alone, which ends with its work.
            let done = unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) };
            assert_eq!(done, 0, "{}", io::Error::last_os_error());
            work()
        })
    }

    #[test]
    fn only_root_and_the_owner_may_detach() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("Skipped: other users need root.");
            return;
        }
        for (attached_by, asked_by, may) in
            [(1234, 1234, true), (1234, 0, true), (0, 0, true), (1234, 4321, false), (0, 1234, false)]
        {
            let (device, shared, listener) = attached(&format!("of-{attached_by}-{asked_by}"));
            let own = shared.clone();
            as_user(attached_by, move || serve(listener, own));
            let answer = as_user(asked_by, move || ask(&device, "detach").unwrap().unwrap()).join().unwrap();
            let expected = if may { "ok" } else { "only root and the user who attached may detach" };
            assert_eq!((answer.as_str(), shared.is_end_requested()), (expected, may), "{attached_by} {asked_by}");
        }
    }
}
