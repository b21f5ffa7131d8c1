//! The table of presets in the documentation is the one the code gives.

use aqumen_transport::rtp::RtpConfig;
use aqumen_transport::sctp::SctpConfig;
use aqumen_transport::tcp::{Quirks, TcpConfig};
use aqumen_transport::udp::UdpConfig;
use aqumen_units::Span;

const PAGE: &str = include_str!("../../../../docs/transports/tcp.md");

fn either(value: bool) -> String {
    if value { "yes" } else { "no" }.to_string()
}

fn limit(value: u8) -> String {
    if value == 0 { "none".to_string() } else { value.to_string() }
}

fn delay(value: Option<Span>) -> String {
    value.map_or("off".to_string(), |span| span.to_string())
}

fn window(value: Option<u32>) -> String {
    value.map_or("unchanged".to_string(), |window| window.to_string())
}

/// A preset's values by name. The pattern names every field: a new one does not compile until it is in the table.
fn rows(cfg: &TcpConfig) -> Vec<(&'static str, String)> {
    let TcpConfig {
        variant,
        congestion,
        hystart,
        reno_friendly,
        pacing,
        ecn,
        packet_bytes,
        header_bytes,
        ack_bytes,
        initial_window,
        receive_window,
        delayed_ack,
        min_rto,
        rto_floor,
        max_rto,
        initial_rto,
        rto_tick,
        max_burst,
        limited_transmit,
        growth_limit,
        restart_window,
        syn,
        timestamps,
        send_overhead,
        min_window,
        halve_flight,
        validate_window,
        exit_by_flight,
        ect_retransmissions,
        initial_threshold,
        loss_detection,
        lost_retransmissions,
        reduction,
        tail_probe,
        frto,
        whole_windows,
        quick_acks,
        ack_marks,
        adaptive_acks,
        write,
        ack_merging,
        quirks,
    } = *cfg;
    let Quirks {
        recovery_burst,
        cwr_retransmissions,
        timeout_after_mark_keeps_threshold,
        mark_after_timeout_counts,
        ecn_backoff,
        forget_rtt,
        full_segments,
        timer_on_any_ack,
    } = quirks;
    vec![
        ("variant", format!("{variant:?}")),
        ("congestion", format!("{congestion:?}")),
        ("hystart", either(hystart)),
        ("reno_friendly", either(reno_friendly)),
        ("pacing", either(pacing)),
        ("ecn", either(ecn)),
        ("packet_bytes", packet_bytes.to_string()),
        ("header_bytes", header_bytes.to_string()),
        ("ack_bytes", ack_bytes.to_string()),
        ("initial_window", initial_window.to_string()),
        ("receive_window", receive_window.to_string()),
        ("delayed_ack", delay(delayed_ack)),
        ("min_rto", min_rto.to_string()),
        ("rto_floor", format!("{rto_floor:?}")),
        ("max_rto", max_rto.to_string()),
        ("initial_rto", initial_rto.to_string()),
        ("rto_tick", rto_tick.to_string()),
        ("max_burst", limit(max_burst)),
        ("limited_transmit", either(limited_transmit)),
        ("growth_limit", growth_limit.to_string()),
        ("restart_window", window(restart_window)),
        ("syn", either(syn)),
        ("timestamps", either(timestamps)),
        ("send_overhead", send_overhead.to_string()),
        ("min_window", min_window.to_string()),
        ("halve_flight", either(halve_flight)),
        ("validate_window", either(validate_window)),
        ("exit_by_flight", either(exit_by_flight)),
        ("recovery_burst", either(recovery_burst)),
        ("ect_retransmissions", either(ect_retransmissions)),
        ("cwr_retransmissions", either(cwr_retransmissions)),
        ("timeout_after_mark_keeps_threshold", either(timeout_after_mark_keeps_threshold)),
        ("mark_after_timeout_counts", either(mark_after_timeout_counts)),
        ("ecn_backoff", either(ecn_backoff)),
        ("forget_rtt", either(forget_rtt)),
        ("full_segments", either(full_segments)),
        ("initial_threshold", initial_threshold.map_or("none".to_string(), |threshold| threshold.to_string())),
        ("loss_detection", format!("{loss_detection:?}")),
        ("lost_retransmissions", either(lost_retransmissions)),
        ("reduction", format!("{reduction:?}")),
        ("timer_on_any_ack", either(timer_on_any_ack)),
        ("tail_probe", either(tail_probe)),
        ("frto", either(frto)),
        ("whole_windows", either(whole_windows)),
        ("quick_acks", limit(quick_acks)),
        ("ack_marks", either(ack_marks)),
        ("adaptive_acks", either(adaptive_acks)),
        ("write", limit(write)),
        ("ack_merging", ack_merging.to_string()),
    ]
}

#[test]
fn the_presets_table_is_the_one_in_the_page() {
    let mut table = String::from("| field | `ns2` | `modern` | `linux` |\n|---|---|---|---|\n");
    let [ns2, modern, linux] = [TcpConfig::ns2(), TcpConfig::modern(), TcpConfig::linux()].map(|cfg| rows(&cfg));
    for (((name, ns2), (_, modern)), (_, linux)) in ns2.into_iter().zip(modern).zip(linux) {
        table += &format!("| `{name}` | {ns2} | {modern} | {linux} |\n");
    }
    assert!(PAGE.contains(&table), "docs/transports/tcp.md should hold:\n{table}");
}

/// Whether a page has a row that begins with a field's name and value.
#[track_caller]
fn assert_row(page: &str, field: &str, value: impl std::fmt::Display) {
    let row = format!("| `{field}` | {value} | ");
    assert!(page.contains(&row), "the page should hold: {row}");
}

#[test]
fn the_table_of_udp_is_the_one_in_the_page() {
    let page = include_str!("../../../../docs/transports/udp.md");
    let UdpConfig { packet_bytes, header_bytes } = UdpConfig::standard();
    assert_row(page, "packet_bytes", packet_bytes);
    assert_row(page, "header_bytes", header_bytes);
}

/// The cells of the rows of a configuration, fields in the order they are declared.
fn sctp_rows(cfg: &SctpConfig) -> Vec<(&'static str, String)> {
    let SctpConfig {
        ecn,
        packet_bytes,
        header_bytes,
        streams,
        handshake,
        initial_window_bytes,
        receive_window_bytes,
        delayed_sack,
        max_burst,
        burst_after_repair,
        recovery,
        min_rto,
        max_rto,
        initial_rto,
    } = *cfg;
    vec![
        ("ecn", either(ecn)),
        ("packet_bytes", packet_bytes.to_string()),
        ("header_bytes", header_bytes.to_string()),
        ("streams", streams.to_string()),
        ("handshake", either(handshake)),
        ("initial_window_bytes", initial_window_bytes.map_or("RFC".to_string(), |window| window.to_string())),
        ("receive_window_bytes", receive_window_bytes.to_string()),
        ("delayed_sack", delay(delayed_sack)),
        ("max_burst", limit(max_burst)),
        ("burst_after_repair", either(burst_after_repair)),
        ("recovery", format!("{recovery:?}")),
        ("min_rto", min_rto.to_string()),
        ("max_rto", max_rto.to_string()),
        ("initial_rto", initial_rto.to_string()),
    ]
}

#[test]
fn the_table_of_sctp_is_the_one_in_the_page() {
    let page = include_str!("../../../../docs/transports/sctp.md");
    for ((field, standard), (_, ns2)) in
        sctp_rows(&SctpConfig::standard()).into_iter().zip(sctp_rows(&SctpConfig::ns2()))
    {
        assert_row(page, field, format!("{standard} | {ns2}"));
    }
}

fn rtp_rows(cfg: &RtpConfig) -> Vec<(&'static str, String)> {
    let RtpConfig {
        control,
        ecn,
        packet_bytes,
        header_bytes,
        frame_interval,
        whole_packets,
        report_interval,
        sender_report_interval,
        initial_rate,
        min_rate,
        max_rate,
    } = *cfg;
    vec![
        ("control", format!("{control:?}").to_lowercase()),
        ("ecn", either(ecn)),
        ("packet_bytes", packet_bytes.to_string()),
        ("header_bytes", header_bytes.to_string()),
        ("frame_interval", frame_interval.to_string()),
        ("whole_packets", either(whole_packets)),
        ("report_interval", report_interval.to_string()),
        ("sender_report_interval", sender_report_interval.to_string()),
        ("initial_rate", initial_rate.to_string()),
        ("min_rate", min_rate.to_string()),
        ("max_rate", max_rate.to_string()),
    ]
}

#[test]
fn the_table_of_rtp_is_the_one_in_the_page() {
    let page = include_str!("../../../../docs/transports/rtp.md");
    let [rtp, tfrc, nada] = [RtpConfig::standard(), RtpConfig::tfrc(), RtpConfig::nada()].map(|cfg| rtp_rows(&cfg));
    for ((one, two), three) in rtp.iter().zip(&tfrc).zip(&nada) {
        assert_row(page, one.0, format!("{} | {} | {}", one.1, two.1, three.1));
    }
}

#[test]
fn the_page_of_congestion_controls_names_what_each_preset_changes() {
    const CONGESTION: &str = include_str!("../../../../docs/transports/congestion.md");
    let modern = rows(&TcpConfig::modern());
    for (name, preset) in [
        ("cubic", TcpConfig::cubic()),
        ("dctcp", TcpConfig::dctcp()),
        ("prague", TcpConfig::prague()),
        ("bbr", TcpConfig::bbr()),
        ("vegas", TcpConfig::vegas()),
        ("ledbat", TcpConfig::ledbat()),
    ] {
        let changed = rows(&preset).into_iter().zip(&modern).filter(|((_, value), (_, before))| value != before);
        let fields: Vec<&str> = changed.map(|((field, _), _)| field).filter(|field| *field != "congestion").collect();
        let (_, table) = CONGESTION.split_once("further differences from `modern`").unwrap();
        let row = table.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).unwrap_or_default();
        for field in &fields {
            assert!(row.contains(&format!("`{field}`")), "{name} changes {field}: {row:?}");
        }
        assert_eq!(
            row.matches('`').count() / 2,
            if fields.is_empty() { 0 } else { fields.len() + 1 },
            "{name}: {row:?}"
        );
    }
}
