//! The local socket by which `status`, `detach` and `top` reach an attached aqumend.
//!
//! Its name is abstract: it belongs to the network namespace, as the device does, it goes with the process, whatever
//! ends it, and two cannot have it, so that two aqumend never look after one device. A request is one word on a line.

use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Duration;

use super::{Board, connections};
use crate::{Failure, Tried};

const PREFIX: &str = "aqumend/";
/// An aqumend that takes twice as long does not answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// What is so where nobody answers.
const SILENT: &str = "it does not answer: it was stopped or hangs, and everything passes unregulated";

fn address(device: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{PREFIX}{device}"))
}

/// Takes the name of `device`: as long as the listener lives, nobody else attaches to it.
pub(crate) fn listen(device: &str) -> Result<UnixListener, Failure> {
    address(device).and_then(|address| UnixListener::bind_addr(&address)).map_err(|error| {
        if error.kind() == io::ErrorKind::AddrInUse {
            Failure::refused(format!("{device}: another aqumend is attached already; see aqumend status {device}"))
        } else {
            Failure::refused(format!("{device}: its socket: {error}"))
        }
    })
}

/// Answers requests until the process ends.
pub(crate) fn serve(listener: UnixListener, board: Arc<Board>) {
    if listener.set_nonblocking(true).is_err() {
        return;
    }
    let accept = || {
        let (stream, _) = listener.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    };
    connections::serve(&listener, accept, |stream: &UnixStream, request| answer(request, stream, &board));
}

/// The answer to a request, once its line is complete.
fn answer(request: &[u8], stream: &UnixStream, board: &Board) -> Option<Vec<u8>> {
    let end = request.iter().position(|byte| *byte == b'\n')?;
    Some(match request[..end].trim_ascii() {
        b"status" => serde_json::to_vec(&board.status()).unwrap_or_default(),
        b"detach" if may_detach(stream) => {
            board.stop();
            b"ok".to_vec()
        }
        b"detach" => b"only root and whoever attached may detach".to_vec(),
        _ => b"unknown request".to_vec(),
    })
}

/// Anybody in the namespace can connect.
fn may_detach(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid();
    rustix::net::sockopt::socket_peercred(stream).is_ok_and(|peer| peer.uid.is_root() || peer.uid == own)
}

/// The devices of this network namespace to which an aqumend is attached.
pub(crate) fn devices() -> Result<Vec<String>, Failure> {
    let sockets =
        std::fs::read_to_string("/proc/thread-self/net/unix").or_refuse(|| "/proc/thread-self/net/unix".into())?;
    let names =
        sockets.lines().filter_map(|line| line.split_whitespace().nth(7)?.strip_prefix('@')?.strip_prefix(PREFIX));
    let mut devices: Vec<String> = names.map(str::to_owned).collect();
    // Connections that are open are listed too.
    devices.sort();
    devices.dedup();
    Ok(devices)
}

/// What the aqumend of `device` answers to `request`; `None` if there is none.
pub(crate) fn ask(device: &str, request: &str) -> io::Result<Option<String>> {
    talk(device, request).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => io::Error::new(io::ErrorKind::TimedOut, SILENT),
        _ => error,
    })
}

fn talk(device: &str, request: &str) -> io::Result<Option<String>> {
    let mut stream = match UnixStream::connect_addr(&address(device)?) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(None),
        other => other?,
    };
    stream.set_read_timeout(Some(2 * PATIENCE))?;
    writeln!(stream, "{request}")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(Some(text))
}

/// Whether the aqumend of `device` is gone.
pub(crate) fn is_gone(device: &str) -> bool {
    address(device).and_then(|address| UnixStream::connect_addr(&address)).is_err()
}

#[cfg(test)]
mod tests {
    use super::super::{Sample, Status, Totals};
    use super::*;

    /// An aqumend's board, and a name that no other process has.
    fn attached(name: &str) -> (String, Arc<Board>, UnixListener) {
        let device = format!("{name}-{}", std::process::id());
        let board = Arc::new(Board::default());
        board.begin(Status { device: device.clone(), aqm: "pi".into(), ..Status::default() });
        let listener = listen(&device).unwrap();
        (device, board, listener)
    }

    #[test]
    fn whoever_asks_is_answered_and_who_attached_may_detach() {
        let (device, board, listener) = attached("asked");
        board.show(Sample { t_s: 1.0, ..Sample::default() }, Totals { marked_pkts: 3, ..Totals::default() }, &[]);
        let own = board.clone();
        std::thread::spawn(move || serve(listener, own));
        assert!(devices().unwrap().contains(&device) && !is_gone(&device));
        let status: serde_json::Value = serde_json::from_str(&ask(&device, "status").unwrap().unwrap()).unwrap();
        assert_eq!((&status["device"], &status["totals"]["marked_pkts"]), (&device.as_str().into(), &3.into()));
        assert_eq!(ask(&device, "dance").unwrap().unwrap(), "unknown request");
        assert!(!board.is_stopped());
        // This process is its own.
        assert_eq!(ask(&device, "detach").unwrap().unwrap(), "ok");
        assert!(board.is_stopped());
    }

    #[test]
    fn connections_that_ask_nothing_keep_nobody_from_asking() {
        let (device, board, listener) = attached("idle");
        std::thread::spawn(move || serve(listener, board));
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

    /// What a thread of user number `of` does.
    fn as_user<T: Send + 'static>(of: u32, work: impl FnOnce() -> T + Send + 'static) -> std::thread::JoinHandle<T> {
        std::thread::spawn(move || {
            // SAFETY: the call by its number changes the identity of this thread alone, which ends with its work.
            let done = unsafe { libc::syscall(libc::SYS_setresuid, of, of, of) };
            assert_eq!(done, 0, "{}", io::Error::last_os_error());
            work()
        })
    }

    #[test]
    fn root_and_who_attached_may_detach_and_nobody_else() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("Skipped: other users need root.");
            return;
        }
        for (attached_by, asked_by, may) in
            [(1234, 1234, true), (1234, 0, true), (0, 0, true), (1234, 4321, false), (0, 1234, false)]
        {
            let (device, board, listener) = attached(&format!("of-{attached_by}-{asked_by}"));
            let own = board.clone();
            as_user(attached_by, move || serve(listener, own));
            let answer = as_user(asked_by, move || ask(&device, "detach").unwrap().unwrap()).join().unwrap();
            let said = if may { "ok" } else { "only root and whoever attached may detach" };
            assert_eq!((answer.as_str(), board.is_stopped()), (said, may), "{attached_by} {asked_by}");
        }
    }
}
