//! Writer of departing packets (pcapng), at the times of their departure, with CE where the AQM marked them.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use aqumen_capture::Ip;

use crate::error::Error;

/// Writer of a file that gets its name when it is complete.
pub(crate) struct Writer {
    file: PathBuf,
    /// Temporary file; `file` itself if that is not a regular file.
    part: PathBuf,
    out: aqumen_capture::Writer<BufWriter<File>>,
    /// Link types, each with an interface of its own, in the order in which they appeared.
    links: Vec<u16>,
}

/// A captured packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct CapturedPacket {
    pub(crate) link: u16,
    pub(crate) original: u32,
    pub(crate) ip: Option<Ip>,
    pub(crate) data: Vec<u8>,
}

impl Writer {
    /// Begins `file`, which must differ from the capture.
    pub(crate) fn create(file: &Path, capture: &Path) -> Result<Self, Error> {
        let wrong = |message: String| Error::Out { file: file.display().to_string(), message };
        let exists = fs::canonicalize(file).ok();
        if exists.is_some() && exists == fs::canonicalize(capture).ok() {
            return Err(wrong("it is the capture that is replayed".into()));
        }
        let ordinary = exists.as_ref().is_none_or(|path| path.is_file());
        let mut part = exists.unwrap_or_else(|| file.to_path_buf());
        let target = part.clone();
        if ordinary {
            part.as_mut_os_string().push(".part");
        }
        let begun = File::create(&part).and_then(|out| aqumen_capture::Writer::new(BufWriter::new(out)));
        let out = begun.map_err(|error| wrong(error.to_string()))?;
        Ok(Writer { file: target, part, out, links: Vec::new() })
    }

    /// Writes a packet that departs at `at_ns` since 1970.
    pub(crate) fn write(&mut self, at_ns: u64, packet: &mut CapturedPacket, marked: bool) -> Result<(), Error> {
        self.try_write(at_ns, packet, marked).map_err(|error| self.failed(&error))
    }

    fn try_write(&mut self, at_ns: u64, packet: &mut CapturedPacket, marked: bool) -> io::Result<()> {
        let interface = match self.links.iter().position(|link| *link == packet.link) {
            Some(known) => known as u32,
            None => {
                self.links.push(packet.link);
                self.out.interface(packet.link, None)?
            }
        };
        if let (true, Some(ip)) = (marked, &packet.ip) {
            ip.mark(&mut packet.data);
        }
        self.out.packet(interface, at_ns, packet.original, &packet.data)
    }

    /// Completes the file.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        let flushed = self.out.flush();
        let named =
            flushed.and_then(|()| if self.part == self.file { Ok(()) } else { fs::rename(&self.part, &self.file) });
        named.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> Error {
        Error::Out { file: self.file.display().to_string(), message: error.to_string() }
    }
}

impl Drop for Writer {
    /// Removes an incomplete file.
    fn drop(&mut self) {
        if self.part != self.file {
            // After `finish` there is nothing of this name.
            let _ = fs::remove_file(&self.part);
        }
    }
}
