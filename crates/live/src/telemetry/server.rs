//! The live page, Prometheus' metrics and the status over HTTP, on loopback unless told otherwise.
//!
//! Requests are read, never obeyed: nothing here changes anything.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use super::{Board, page, prometheus};
use crate::Failure;

const PATIENCE: Duration = Duration::from_secs(2);
/// A request longer than this is not for us.
const REQUEST_BYTES_MAX: u64 = 8192;
/// Samples in one answer.
const SAMPLES_MAX: usize = 12_000;

/// Where the live page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    /// Nowhere.
    No,
    /// At the usual place, or at any free port if that is taken.
    Usual(SocketAddr),
    /// There or nowhere.
    At(SocketAddr),
}

/// Takes the address; `None` if none is wanted.
pub(crate) fn listen(listen: Listen) -> Result<Option<TcpListener>, Failure> {
    match listen {
        Listen::No => Ok(None),
        // The usual place is taken by the aqumend of another device: any other will do.
        Listen::Usual(address) => {
            let any = SocketAddr::new(address.ip(), 0);
            Ok(TcpListener::bind(address).or_else(|_| TcpListener::bind(any)).ok())
        }
        Listen::At(address) => TcpListener::bind(address).map(Some).map_err(|error| {
            let why = match error.kind() {
                io::ErrorKind::AddrInUse => "the port is in use".into(),
                _ => error.to_string(),
            };
            Failure::refused(format!("--listen {address}: {why}"))
        }),
    }
}

/// Answers requests until the process ends.
pub(crate) fn serve(listener: TcpListener, board: Arc<Board>) {
    for stream in listener.incoming().flatten() {
        let _ = stream.set_read_timeout(Some(PATIENCE));
        let _ = stream.set_write_timeout(Some(PATIENCE));
        let _ = answer(&stream, &board);
    }
}

fn answer(mut stream: &TcpStream, board: &Board) -> io::Result<()> {
    let mut lines = BufReader::new(stream.take(REQUEST_BYTES_MAX)).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    // The rest of the request is read, or the connection would be reset under the answer.
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (code, kind, body) = match (method, path) {
        ("GET" | "HEAD", "/") => ("200 OK", "text/html; charset=utf-8", page::HTML.to_owned()),
        ("GET" | "HEAD", "/metrics") => ("200 OK", "text/plain; version=0.0.4", prometheus::text(&board.status())),
        ("GET" | "HEAD", "/status") => ("200 OK", "application/json", serde_json::to_string(&board.status())?),
        ("GET" | "HEAD", "/samples") => {
            let after = query.strip_prefix("after=").and_then(|t_s| t_s.parse().ok()).unwrap_or(f64::NEG_INFINITY);
            ("200 OK", "application/json", serde_json::to_string(&board.samples_after(after, SAMPLES_MAX))?)
        }
        ("GET" | "HEAD", _) => {
            ("404 Not Found", "text/plain", "no such page; there are /, /metrics, /status, /samples\n".into())
        }
        _ => ("405 Method Not Allowed", "text/plain", "only GET\n".into()),
    };
    let head = format!(
        "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    if method != "HEAD" {
        stream.write_all(body.as_bytes())?;
    }
    Ok(())
}
