//! Sleep states of the processor: a run needs idle processors awake, so that packets are written on time.

use std::fs::{File, OpenOptions};
use std::io::Write as _;

/// Request that idle processors stay awake. In a virtual machine a sleeping processor gives its core away, and its next
/// work is late by the time until it has the core again.
#[derive(Debug)]
pub(crate) struct CpuLatencyRequest {
    /// Open request: the kernel withdraws it when this is closed.
    request: Option<File>,
}

impl CpuLatencyRequest {
    /// Makes the request by the kernel's PM QoS interface. Before that it waits for pending disk writes, which would
    /// disturb a run by milliseconds.
    pub(crate) fn open() -> Self {
        rustix::fs::sync();
        let latency_us_max: i32 = 0;
        let request = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").and_then(|mut device| {
            device.write_all(&latency_us_max.to_ne_bytes())?;
            Ok(device)
        });
        CpuLatencyRequest { request: request.ok() }
    }

    pub(crate) fn is_granted(&self) -> bool {
        self.request.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn the_request_is_granted_where_the_device_is_accessible() {
        let request = CpuLatencyRequest::open();
        let mut value = [1; 4];
        let readable = File::open("/dev/cpu_dma_latency").and_then(|mut device| device.read_exact(&mut value));
        // The device returns the lowest requested latency, in microseconds.
        assert_eq!(request.is_granted(), readable.is_ok());
        assert!(readable.is_err() || i32::from_ne_bytes(value) == 0);
        assert!(!CpuLatencyRequest { request: None }.is_granted());
    }
}
