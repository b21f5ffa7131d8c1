//! The order of the records of a packet trace.

use aqumen_capture::Reader;
use aqumen_network::Trace;

/// Links as they are reported, each with a moment of report and a start of transmission (ns); and as they are written.
fn written(links: usize, slack: u64, reports: &[(u64, u32, u64)]) -> Vec<(u32, u64)> {
    let mut file = Vec::new();
    let names: Vec<String> = (0..links).map(|link| link.to_string()).collect();
    let mut trace = Trace::new(&mut file, names.iter().map(String::as_str), slack).unwrap();
    for &(now, link, start) in reports {
        trace.transmit(now, link, start, 1000, |headers| headers.push(0x45));
    }
    trace.finish().unwrap();
    let mut reader = Reader::new(&file[..]).unwrap();
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        records.push((record.interface, record.at_ns as u64));
    }
    records
}

#[test]
fn records_of_one_moment_are_written_in_the_order_in_which_they_were_reported() {
    // The first three are written when the fourth is reported, and their room is used again, that of the last first.
    let reports = [(0, 0, 0), (0, 1, 0), (0, 2, 0), (100, 0, 100), (100, 2, 105), (100, 1, 105), (100, 0, 105)];
    let order = [(0, 0), (1, 0), (2, 0), (0, 100), (2, 105), (1, 105), (0, 105)];
    assert_eq!(written(3, 10, &reports), order);
    // Of links that are reported backwards too.
    assert_eq!(written(3, 10, &[(0, 2, 7), (0, 1, 7), (0, 0, 7)]), [(2, 7), (1, 7), (0, 7)]);
}

#[test]
fn a_record_that_is_reported_late_stands_where_its_time_is() {
    // Reported 10 ns after its start, as late as may be, and before one that is still to come.
    let reports = [(50, 0, 45), (50, 0, 70), (53, 1, 44), (55, 2, 45), (90, 1, 80)];
    assert_eq!(written(3, 10, &reports), [(1, 44), (0, 45), (2, 45), (0, 70), (1, 80)]);
}
