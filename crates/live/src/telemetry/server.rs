//! The live page, Prometheus' metrics and the status over HTTP, on loopback unless told otherwise.
//!
//! Requests are read, never obeyed: nothing here changes anything. A page of somebody else cannot read them either: a
//! script of it reaches this machine only by a name of its own (DNS rebinding), and such names are refused.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use super::{Board, connections, page, prometheus};
use crate::Failure;

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

/// Answers requests until the process ends. `name` is one by which the page may be asked for, beside addresses.
pub(crate) fn serve(listener: TcpListener, board: Arc<Board>, name: Option<String>) {
    if listener.set_nonblocking(true).is_err() {
        return;
    }
    let accept = || {
        let (stream, _) = listener.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    };
    connections::serve(&listener, accept, |_: &TcpStream, request| answer(request, &board, name.as_deref()));
}

/// The answer to `request`, once that is complete.
fn answer(request: &[u8], board: &Board, name: Option<&str>) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(request);
    let end = text.find("\r\n\r\n").or_else(|| text.find("\n\n"))?;
    let (first, fields) = text[..end].split_once('\n').unwrap_or((&text[..end], ""));
    let mut words = first.trim_end().split(' ');
    let (method, target, version) = (words.next()?, words.next().unwrap_or(""), words.next().unwrap_or(""));
    let (code, kind, body) = match host_of(fields, version) {
        None => ("400 Bad Request", "text/plain", "one Host is wanted\n".into()),
        Some(host) if !is_ours(host, name) => {
            let why = "ask for this page by an IP address, by localhost, or by the name of --host\n";
            ("421 Misdirected Request", "text/plain", why.into())
        }
        Some(_) => page_at(method, target, board),
    };
    let head = format!(
        "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let body = if method == "HEAD" { "" } else { &body };
    Some((head + body).into_bytes())
}

/// The host that a request is for; HTTP before 1.1 needs to name none. `None`: a request that is not valid (RFC 9112
/// section 3.2).
fn host_of<'a>(fields: &'a str, version: &str) -> Option<&'a str> {
    let mut hosts = fields.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim())
    });
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => Some(host),
        (None, None) if version != "HTTP/1.1" => Some("localhost"),
        _ => None,
    }
}

/// Whether `host`, with or without a port, is an address, `localhost` or `name`.
fn is_ours(host: &str, name: Option<&str>) -> bool {
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    if let Some((address, port)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let address = address.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6());
        return address && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    let bare = match host.split_once(':') {
        Some((bare, port)) if is_port(port) => bare,
        Some(_) => return false,
        None => host,
    };
    let bare = bare.strip_suffix('.').unwrap_or(bare);
    bare.parse::<IpAddr>().is_ok()
        || bare.eq_ignore_ascii_case("localhost")
        || name.is_some_and(|name| bare.eq_ignore_ascii_case(name))
}

/// Code, type and body.
fn page_at(method: &str, target: &str, board: &Board) -> (&'static str, &'static str, String) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let json = |value: serde_json::Result<String>| ("200 OK", "application/json", value.unwrap_or_default());
    match (method, path) {
        ("GET" | "HEAD", "/") => ("200 OK", "text/html; charset=utf-8", page::HTML.to_owned()),
        ("GET" | "HEAD", "/metrics") => ("200 OK", "text/plain; version=0.0.4", prometheus::text(&board.status())),
        ("GET" | "HEAD", "/status") => json(serde_json::to_string(&board.status())),
        ("GET" | "HEAD", "/samples") => {
            let after = query.strip_prefix("after=").and_then(|t_s| t_s.parse().ok()).unwrap_or(f64::NEG_INFINITY);
            json(serde_json::to_string(&board.samples_after(after, SAMPLES_MAX)))
        }
        ("GET" | "HEAD", _) => {
            ("404 Not Found", "text/plain", "no such page; there are /, /metrics, /status, /samples\n".into())
        }
        _ => ("405 Method Not Allowed", "text/plain", "only GET\n".into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

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
        std::thread::spawn(move || serve(listener, board, None));
        let ask = |request: &&str| {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "{request} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
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
    fn half_requests_do_not_shut_out_the_metrics() {
        let board = Arc::new(Board::default());
        let listener = listen(Listen::At(here(0))).unwrap().unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || serve(listener, board, None));
        let connect = |request: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        };
        let idle: Vec<TcpStream> = (0..130).map(|_| connect("GET /metrics HTTP/1.1\r\n")).collect();
        let mut text = String::new();
        connect("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK") && text.contains("aqumen_regulating"), "{text}");
        drop(idle);
    }

    #[test]
    fn only_addresses_localhost_and_the_name_that_was_given_are_hosts() {
        let board = Board::default();
        let code = |fields: &str, name: Option<&str>| {
            let request = format!("GET /status {fields}\r\n\r\n");
            let answer = String::from_utf8(answer(request.as_bytes(), &board, name).unwrap()).unwrap();
            answer.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
        };
        let of = |host: &str, name| code(&format!("HTTP/1.1\r\nAccept: */*\r\nhOsT:{host}"), name);
        for host in
            ["127.0.0.1:9811", "192.0.2.7", "[::1]:9811", "[fd00::1]", " localhost", "LOCALHOST:80", "localhost."]
        {
            assert_eq!(of(host, None), 200, "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:9811",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "",
            "[::1",
            "[127.0.0.1]",
            "::1",
            "127.0.0.1:x",
            "localhost:80:80",
            "x@localhost",
            "router.lan",
        ] {
            assert_eq!(of(host, None), 421, "{host}");
        }
        assert_eq!((of("Router.lan:9811", Some("router.lan")), of("router.lan.", Some("router.lan"))), (200, 200));
        assert_eq!((of("lan", Some("router.lan")), of("10.0.0.1", Some("router.lan"))), (421, 200));
        // RFC 9112 section 3.2: HTTP/1.1 names one host; before, none is needed.
        let two = "HTTP/1.1\r\nHost: localhost\r\nHost: evil.example";
        assert_eq!((code("HTTP/1.1", None), code(two, None), code("HTTP/1.0", None)), (400, 400, 200));
        assert_eq!(code("HTTP/1.0\r\nHost: evil.example", None), 421);
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
