//! Seconds to solve an MMPP queue, and to read and fit a trace.
//!
//! `cargo bench -p aqumen-queueing` prints a table, best of three. Without `--bench` (as in tests) it solves small
//! queues once, as a smoke test.

use std::hint::black_box;
use std::time::Instant;

use aqumen_queueing::trace::{Arrival, Counter};
use aqumen_queueing::{Model, Queue, Source, arrivals, fit};

/// Model of two-state sources with a total load of 0.73.
fn model(sources: u32, stages: u32, capacity: u32) -> Model {
    let rates = [[300.0, 80.0], [260.0, 20.0], [350.0, 60.0], [280.0, 100.0]];
    let speeds = [[2.0, 1.0], [1.25, 5.0], [5.0, 3.0], [0.5, 0.4]];
    let source = |s: u32| {
        let (rates, [down, up]) = (rates[s as usize % 4], speeds[s as usize % 4]);
        Source::new(format!("s{s}"), &[vec![-down, down], vec![up, -up]], &rates).unwrap()
    };
    let sources: Vec<Source> = (0..sources).map(source).collect();
    let service_rate = sources.iter().map(Source::mean_rate).sum::<f64>() / 0.73;
    Model::new(Queue { capacity, service_rate, stages }, sources).unwrap()
}

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    println!("states  stages  buffer  chain    seconds");
    let eliminated = [(3, 1, 10_000), (3, 4, 1000), (4, 4, 1000), (4, 10, 1000), (3, 10, 10_000)];
    for (sources, stages, capacity) in eliminated.into_iter().chain([(10, 1, 100), (10, 4, 100), (14, 1, 100)]) {
        let sources = if full { sources } else { sources.min(4) };
        let model = model(sources, stages, if full { capacity } else { 20 });
        let rounds = if full { 3 } else { 1 };
        let seconds = (0..rounds).map(|_| {
            let start = Instant::now();
            black_box(model.solve().unwrap());
            start.elapsed().as_secs_f64()
        });
        let (best, states) = (seconds.fold(f64::INFINITY, f64::min), 1 << sources);
        println!("{states:6}  {stages:6}  {capacity:6}  {:7}  {best:.4}", model.states());
    }
    let source = model(4, 1, 20).sources()[0].clone();
    let mut times = Vec::new();
    arrivals(&source, 1, if full { 10_000.0 } else { 100.0 }, |at_ns| times.push(at_ns));
    let start = Instant::now();
    let mut counter = Counter::default();
    times.iter().for_each(|&at_ns| counter.add(Arrival { at_ns, bytes: None }));
    let counted = start.elapsed().as_secs_f64();
    let summary = counter.finish().unwrap();
    let start = Instant::now();
    black_box(fit::fit("trace", summary, 3).unwrap());
    let fitted = start.elapsed().as_secs_f64();
    println!("trace: {:.1} ns per packet counted, {fitted:.4} s to fit", counted * 1e9 / times.len() as f64);
}
