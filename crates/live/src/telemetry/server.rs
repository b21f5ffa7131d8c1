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

#[cfg(test)]
mod tests {
    use super::super::{Sample, Status, Totals};
    use super::*;

    fn here(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    /// What a page of an attached aqumend answers to a request: the line with the code, and the body.
    fn answers(requests: &[&str]) -> Vec<(String, String)> {
        let board = Arc::new(Board::default());
        board.begin(Status { device: "eth0".into(), ..Status::default() });
        for t_s in [1.0, 2.0, 3.0] {
            board.show(Sample { t_s, ..Sample::default() }, Totals::default(), &[]);
        }
        let listener = listen(Listen::At(here(0))).unwrap().unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || serve(listener, board));
        let ask = |request: &&str| {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "{request} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            // What is not sent is as long as what would be.
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
            assert!(body.is_empty() || length == body.len().to_string(), "{head}");
            assert_ne!(length, "0", "{head}");
            (head.lines().next().unwrap().to_owned(), body.to_owned())
        };
        requests.iter().map(ask).collect()
    }

    #[test]
    fn each_page_is_there_and_others_are_not() {
        let told = answers(&["GET /", "GET /metrics", "GET /status", "GET /samples", "GET /other", "POST /status"]);
        let codes: Vec<&str> = told.iter().map(|(code, _)| code.strip_prefix("HTTP/1.1 ").unwrap()).collect();
        assert_eq!(codes, ["200 OK", "200 OK", "200 OK", "200 OK", "404 Not Found", "405 Method Not Allowed"]);
        let bodies: Vec<&str> = told.iter().map(|(_, body)| body.as_str()).collect();
        assert!(
            bodies[0].contains("<title>aqumend</title>") && bodies[1].contains("aqumen_regulating{device=\"eth0\"")
        );
        let status: serde_json::Value = serde_json::from_str(bodies[2]).unwrap();
        assert_eq!((&status["device"], &status["now"]["t_s"]), (&"eth0".into(), &3.0.into()));
        assert!(bodies[4].starts_with("no such page") && bodies[5] == "only GET\n");
    }

    #[test]
    fn samples_are_those_after_a_moment() {
        let told = answers(&["GET /samples?after=1.5", "GET /samples?before=1.5", "GET /samples?after=3"]);
        let counts = told.iter().map(|(_, body)| serde_json::from_str::<Vec<serde_json::Value>>(body).unwrap().len());
        assert_eq!(counts.collect::<Vec<_>>(), [2, 3, 0]);
    }

    #[test]
    fn who_asks_for_the_head_alone_gets_no_body() {
        for path in ["/", "/metrics", "/status", "/samples", "/other"] {
            let told = answers(&[&format!("HEAD {path}"), &format!("GET {path}")]);
            assert!(told[0].0 == told[1].0 && told[0].1.is_empty() && !told[1].1.is_empty(), "{path}: {told:?}");
        }
    }

    #[test]
    fn the_usual_place_gives_way_and_one_that_is_named_does_not() {
        assert!(listen(Listen::No).unwrap().is_none());
        let taken = listen(Listen::At(here(0))).unwrap().unwrap().local_addr().unwrap();
        let first = listen(Listen::Usual(taken)).unwrap().unwrap();
        assert_eq!(first.local_addr().unwrap(), taken);
        let second = listen(Listen::Usual(taken)).unwrap().unwrap().local_addr().unwrap();
        assert!(second.ip() == taken.ip() && second.port() != taken.port(), "{second}");
        let why = listen(Listen::At(taken)).unwrap_err().to_string();
        assert_eq!(why, format!("--listen {taken}: the port is in use"));
        // An address of the documentation is no machine's.
        let why = listen(Listen::At(SocketAddr::from(([203, 0, 113, 1], 80)))).unwrap_err().to_string();
        assert!(why.starts_with("--listen 203.0.113.1:80: ") && !why.contains("in use"), "{why}");
    }
}
