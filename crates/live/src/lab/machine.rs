//! What a run asks of the machine for as long as it lasts, so that packets are written on time.

use std::fs::{File, OpenOptions};
use std::io::Write as _;

/// While it is there, idle processors wait for work instead of sleeping. In a virtual machine one that sleeps gives its
/// core away, and what it has to do is late by as long as it takes to get it back.
#[derive(Debug)]
pub struct Calm {
    /// The kernel takes the request back when this is closed.
    request: Option<File>,
}

impl Calm {
    /// Asks for it, by the kernel's interface for latencies that are bearable, once what waits for the disk is written:
    /// that would disturb the run by milliseconds.
    pub fn ask() -> Calm {
        rustix::fs::sync();
        let bearable_us: i32 = 0;
        let request = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").and_then(|mut device| {
            device.write_all(&bearable_us.to_ne_bytes())?;
            Ok(device)
        });
        Calm { request: request.ok() }
    }

    /// Whether idle processors are kept from sleeping.
    pub fn awake(&self) -> bool {
        self.request.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn processors_are_awake_where_the_kernel_lets_us_ask() {
        let calm = Calm::ask();
        let mut shown = [1; 4];
        let asked = File::open("/dev/cpu_dma_latency").and_then(|mut device| device.read_exact(&mut shown));
        // Whoever may write to the device may read it: the least of all that was asked for, in microseconds.
        assert_eq!(calm.awake(), asked.is_ok());
        assert!(asked.is_err() || i32::from_ne_bytes(shown) == 0);
        assert!(!Calm { request: None }.awake());
    }
}
