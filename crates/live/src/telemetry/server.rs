//! The live page, metrics for Prometheus and the status over HTTP, on loopback by default.
//!
//! Requests change nothing. A script of another site cannot read the answers: it reaches this machine only by a host
//! name of that site (DNS rebinding), and such names are refused.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use super::{SharedStatus, connections, page, prometheus};
use crate::Error;

/// Samples in one answer.
const SAMPLES_MAX: usize = 12_000;

/// Address of the live page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    Off,
    /// Default address, or any free port if that is taken.
    Preferred(SocketAddr),
    /// This address and no other.
    Exactly(SocketAddr),
}

/// Binds the address; `None` if no page is wanted.
pub(crate) fn listen(listen: Listen) -> Result<Option<TcpListener>, Error> {
    match listen {
        Listen::Off => Ok(None),
        // Another aqumend may have taken the default port: any other will do.
        Listen::Preferred(address) => {
            let any = SocketAddr::new(address.ip(), 0);
            Ok(TcpListener::bind(address).or_else(|_| TcpListener::bind(any)).ok())
        }
        Listen::Exactly(address) => TcpListener::bind(address).map(Some).map_err(|error| {
            let why = match error.kind() {
                io::ErrorKind::AddrInUse => "the port is in use".into(),
                _ => error.to_string(),
            };
            Error::setup(format!("--listen {address}: {why}"))
        }),
    }
}

/// Answers requests until the process ends. `name`: a permitted host name, beside addresses and localhost.
pub(crate) fn serve(listener: TcpListener, shared: Arc<SharedStatus>, name: Option<String>) {
    if listener.set_nonblocking(true).is_err() {
        return;
    }
    let accept = || {
        let (stream, _) = listener.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    };
    connections::serve(&listener, accept, |_: &TcpStream, request| answer(request, &shared, name.as_deref()));
}

/// Answer to `request`, once it is complete.
fn answer(request: &[u8], shared: &SharedStatus, name: Option<&str>) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(request);
    let end = text.find("\r\n\r\n").or_else(|| text.find("\n\n"))?;
    let (first, fields) = text[..end].split_once('\n').unwrap_or((&text[..end], ""));
    let mut words = first.trim_end().split(' ');
    let (method, target, version) = (words.next()?, words.next().unwrap_or(""), words.next().unwrap_or(""));
    let (code, kind, body) = match requested_host(fields, version) {
        None => ("400 Bad Request", "text/plain", "exactly one Host is required\n".into()),
        Some(host) if !is_permitted(host, name) => {
            let why = "use an IP address, localhost, or the name of --host\n";
            ("421 Misdirected Request", "text/plain", why.into())
        }
        Some(_) => respond(method, target, shared),
    };
    let head = format!(
        "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let body = if method == "HEAD" { "" } else { &body };
    Some((head + body).into_bytes())
}

/// Host of a request, which may be missing before HTTP/1.1. `None`: the request is not valid (RFC 9112 section 3.2).
fn requested_host<'a>(fields: &'a str, version: &str) -> Option<&'a str> {
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
fn is_permitted(host: &str, name: Option<&str>) -> bool {
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

/// Code, type and body of an answer.
fn respond(method: &str, target: &str, shared: &SharedStatus) -> (&'static str, &'static str, String) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let json = |value: serde_json::Result<String>| ("200 OK", "application/json", value.unwrap_or_default());
    match (method, path) {
        ("GET" | "HEAD", "/") => ("200 OK", "text/html; charset=utf-8", page::HTML.to_owned()),
        ("GET" | "HEAD", "/metrics") => ("200 OK", "text/plain; version=0.0.4", prometheus::text(&shared.status())),
        ("GET" | "HEAD", "/status") => json(serde_json::to_string(&shared.status())),
        ("GET" | "HEAD", "/samples") => {
            let after = query.strip_prefix("after=").and_then(|t_s| t_s.parse().ok()).unwrap_or(f64::NEG_INFINITY);
            json(serde_json::to_string(&shared.samples_after(after, SAMPLES_MAX)))
        }
        ("GET" | "HEAD", _) => {
            ("404 Not Found", "text/plain", "no such page; choose from: /, /metrics, /status, /samples\n".into())
        }
        _ => ("405 Method Not Allowed", "text/plain", "only GET and HEAD\n".into()),
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

    /// Answers of a served page to requests: the line with the code, and the body.
    fn answers(requests: &[&str]) -> Vec<(String, String)> {
        let shared = Arc::new(SharedStatus::default());
        shared.set_status(Status { device: "eth0".into(), ..Status::default() });
        for t_s in [1.0, 2.0, 3.0] {
            shared.publish(Sample { t_s, ..Sample::default() }, Totals::default(), &[]);
        }
        let listener = listen(Listen::Exactly(here(0))).unwrap().unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || serve(listener, shared, None));
        let ask = |request: &&str| {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "{request} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            // The announced length is that of the body, which HEAD leaves out.
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
            assert!(body.is_empty() || length == body.len().to_string(), "{head}");
            assert_ne!(length, "0", "{head}");
            (head.lines().next().unwrap().to_owned(), body.to_owned())
        };
        requests.iter().map(ask).collect()
    }

    #[test]
    fn known_pages_are_served_and_others_are_not() {
        let responses =
            answers(&["GET /", "GET /metrics", "GET /status", "GET /samples", "GET /other", "POST /status"]);
        let codes: Vec<&str> = responses.iter().map(|(code, _)| code.strip_prefix("HTTP/1.1 ").unwrap()).collect();
        assert_eq!(codes, ["200 OK", "200 OK", "200 OK", "200 OK", "404 Not Found", "405 Method Not Allowed"]);
        let bodies: Vec<&str> = responses.iter().map(|(_, body)| body.as_str()).collect();
        assert!(
            bodies[0].contains("<title>aqumend</title>") && bodies[1].contains("aqumen_regulating{device=\"eth0\"")
        );
        let status: serde_json::Value = serde_json::from_str(bodies[2]).unwrap();
        assert_eq!((&status["device"], &status["now"]["t_s"]), (&"eth0".into(), &3.0.into()));
        assert!(bodies[4].starts_with("no such page") && bodies[5] == "only GET and HEAD\n");
    }

    #[test]
    fn samples_are_those_after_a_moment() {
        let responses = answers(&["GET /samples?after=1.5", "GET /samples?before=1.5", "GET /samples?after=3"]);
        let counts =
            responses.iter().map(|(_, body)| serde_json::from_str::<Vec<serde_json::Value>>(body).unwrap().len());
        assert_eq!(counts.collect::<Vec<_>>(), [2, 3, 0]);
    }

    #[test]
    fn head_requests_get_no_body() {
        for path in ["/", "/metrics", "/status", "/samples", "/other"] {
            let responses = answers(&[&format!("HEAD {path}"), &format!("GET {path}")]);
            assert!(
                responses[0].0 == responses[1].0 && responses[0].1.is_empty() && !responses[1].1.is_empty(),
                "{path}: {responses:?}"
            );
        }
    }

    #[test]
    fn half_requests_do_not_shut_out_the_metrics() {
        let shared = Arc::new(SharedStatus::default());
        let listener = listen(Listen::Exactly(here(0))).unwrap().unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || serve(listener, shared, None));
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
    fn only_addresses_localhost_and_the_given_name_are_hosts() {
        let shared = SharedStatus::default();
        let code = |fields: &str, name: Option<&str>| {
            let request = format!("GET /status {fields}\r\n\r\n");
            let answer = String::from_utf8(answer(request.as_bytes(), &shared, name).unwrap()).unwrap();
            answer.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
        };
        let code_for = |host: &str, name| code(&format!("HTTP/1.1\r\nAccept: */*\r\nhOsT:{host}"), name);
        for host in
            ["127.0.0.1:9811", "192.0.2.7", "[::1]:9811", "[fd00::1]", " localhost", "LOCALHOST:80", "localhost."]
        {
            assert_eq!(code_for(host, None), 200, "{host}");
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
            assert_eq!(code_for(host, None), 421, "{host}");
        }
        assert_eq!(
            (code_for("Router.lan:9811", Some("router.lan")), code_for("router.lan.", Some("router.lan"))),
            (200, 200)
        );
        assert_eq!((code_for("lan", Some("router.lan")), code_for("10.0.0.1", Some("router.lan"))), (421, 200));
        // RFC 9112 section 3.2: HTTP/1.1 names one host; before, none is needed.
        let two = "HTTP/1.1\r\nHost: localhost\r\nHost: evil.example";
        assert_eq!((code("HTTP/1.1", None), code(two, None), code("HTTP/1.0", None)), (400, 400, 200));
        assert_eq!(code("HTTP/1.0\r\nHost: evil.example", None), 421);
    }

    #[test]
    fn only_the_default_address_falls_back_to_another_port() {
        assert!(listen(Listen::Off).unwrap().is_none());
        let taken = listen(Listen::Exactly(here(0))).unwrap().unwrap().local_addr().unwrap();
        let first = listen(Listen::Preferred(taken)).unwrap().unwrap();
        assert_eq!(first.local_addr().unwrap(), taken);
        let second = listen(Listen::Preferred(taken)).unwrap().unwrap().local_addr().unwrap();
        assert!(second.ip() == taken.ip() && second.port() != taken.port(), "{second}");
        let error = listen(Listen::Exactly(taken)).unwrap_err().to_string();
        assert_eq!(error, format!("--listen {taken}: the port is in use"));
        // An address of the documentation belongs to no machine.
        let error = listen(Listen::Exactly(SocketAddr::from(([203, 0, 113, 1], 80)))).unwrap_err().to_string();
        assert!(error.starts_with("--listen 203.0.113.1:80: ") && !error.contains("in use"), "{error}");
    }
}
