//! Connections to one listener, in one thread: each request is read and answered as its bytes arrive.
//!
//! A connection with half a request or an unread answer delays no other. It ends after a few seconds, or earlier: a new
//! connection beyond [`CONNECTIONS_MAX`] replaces the oldest one that waits.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Connections that may be open at once.
const CONNECTIONS_MAX: usize = 64;
/// Longest request, bytes.
const REQUEST_BYTES_MAX: usize = 1 << 16;
/// Limit on unread answers of all connections, bytes: beyond it the oldest ends.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// Timeout of a whole request, and of a pause within an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

struct Connection<S> {
    stream: S,
    /// Time when it was opened, or its peer took the last bytes of the answer.
    since: Instant,
    request: Vec<u8>,
    /// Empty until the request is complete.
    answer: Vec<u8>,
    sent: usize,
}

/// Serves connections until the process ends. `accept` opens the next one, without blocking; `answer` returns `None`
/// as long as a request is not complete.
pub(crate) fn serve<S: Read + Write + AsFd>(
    listener: impl AsFd,
    accept: impl Fn() -> io::Result<S>,
    answer: impl Fn(&S, &[u8]) -> Option<Vec<u8>>,
) {
    let mut open: Vec<Connection<S>> = Vec::new();
    loop {
        let mut fds = vec![PollFd::new(&listener, PollFlags::IN)];
        fds.extend(open.iter().map(|connection| {
            let events = if connection.answer.is_empty() { PollFlags::IN } else { PollFlags::OUT };
            PollFd::new(&connection.stream, events)
        }));
        let wait = Timespec { tv_sec: TIMEOUT.as_secs() as i64, tv_nsec: 0 };
        // Interrupted: nothing is ready.
        let any = poll(&mut fds, (!open.is_empty()).then_some(&wait)).is_ok_and(|ready| ready > 0);
        let ready: Vec<bool> = fds.iter().map(|fd| any && !fd.revents().is_empty()).collect();
        let mut ready_streams = ready[1..].iter();
        open.retain_mut(|connection| {
            let alive = !ready_streams.next().is_some_and(|ready| *ready) || connection.advance(&answer).is_ok();
            alive && connection.since.elapsed() < TIMEOUT
        });
        while open.iter().map(|connection| connection.answer.len()).sum::<usize>() > ANSWER_BYTES_MAX {
            let oldest = open.iter().position(|connection| !connection.answer.is_empty()).expect("the sum is not zero");
            open.remove(oldest);
        }
        if ready[0] {
            accept_all(&mut open, &accept);
        }
    }
}

/// Opens the connections that wait at the listener.
fn accept_all<S>(open: &mut Vec<Connection<S>>, accept: &impl Fn() -> io::Result<S>) {
    for _ in 0..CONNECTIONS_MAX {
        let stream = match accept() {
            Ok(stream) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            // For example without free descriptors: a pause, since the listener stays ready.
            Err(_) => return thread::sleep(Duration::from_millis(10)),
        };
        if open.len() >= CONNECTIONS_MAX {
            open.remove(open.iter().position(|connection| connection.answer.is_empty()).unwrap_or(0));
        }
        open.push(Connection { stream, since: Instant::now(), request: Vec::new(), answer: Vec::new(), sent: 0 });
    }
}

impl<S: Read + Write> Connection<S> {
    /// Reads or writes without waiting. After an error the connection ends.
    fn advance(&mut self, answer: &impl Fn(&S, &[u8]) -> Option<Vec<u8>>) -> io::Result<()> {
        if self.answer.is_empty() {
            let mut bytes = [0; 4096];
            let Some(read) = ready(self.stream.read(&mut bytes))? else { return Ok(()) };
            self.request.extend(&bytes[..read]);
            match answer(&self.stream, &self.request) {
                Some(answer) => (self.answer, self.since) = (answer, Instant::now()),
                None if read == 0 || self.request.len() > REQUEST_BYTES_MAX => {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                None => return Ok(()),
            }
        }
        if let Some(written) = ready(self.stream.write(&self.answer[self.sent..]))? {
            (self.sent, self.since) = (self.sent + written, Instant::now());
        }
        if self.sent == self.answer.len() { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    }
}

/// Number of bytes moved; `None` if the call would block.
fn ready(moved: io::Result<usize>) -> io::Result<Option<usize>> {
    match moved {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

    use super::*;

    /// Server that answers each line with the number of bytes in it.
    fn server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let accept = || {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok(stream)
            };
            serve(&listener, accept, |_: &TcpStream, request: &[u8]| {
                let line = request.strip_suffix(b"\n")?;
                Some(vec![b'x'; std::str::from_utf8(line).unwrap().parse().unwrap()])
            });
        });
        address
    }

    fn connect(address: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    fn answer_of(mut stream: TcpStream) -> io::Result<usize> {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)
    }

    #[test]
    fn half_requests_and_unread_answers_delay_no_other() {
        let address = server();
        let half: Vec<TcpStream> = (0..3 * CONNECTIONS_MAX)
            .map(|_| {
                let mut stream = connect(address);
                stream.write_all(b"12").unwrap();
                stream
            })
            .collect();
        // Answers that exceed every socket buffer, and are never read.
        let unread: Vec<TcpStream> = (0..8)
            .map(|_| {
                let mut stream = connect(address);
                stream.write_all(b"8000000\n").unwrap();
                stream
            })
            .collect();
        let mut whole = connect(address);
        whole.write_all(b"7\n").unwrap();
        assert_eq!(answer_of(whole).unwrap(), 7);
        drop((half, unread));
    }

    #[test]
    fn a_request_may_come_in_pieces_and_a_large_answer_is_whole() {
        let mut stream = connect(server());
        for piece in ["30", "00", "000\n"] {
            stream.write_all(piece.as_bytes()).unwrap();
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(answer_of(stream).unwrap(), 3_000_000);
    }

    #[test]
    fn an_incomplete_request_gets_no_answer() {
        let address = server();
        let mut stream = connect(address);
        stream.write_all(b"12").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(answer_of(stream).unwrap(), 0);
        let mut endless = connect(address);
        // The other end may close while this one still writes.
        let _ = endless.write_all(&[b'1'; 2 * REQUEST_BYTES_MAX]);
        assert!(answer_of(endless).map_or(true, |bytes| bytes == 0));
    }
}
