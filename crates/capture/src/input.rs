//! Input of a capture file: a gzip file is unpacked while it is read.

use std::fmt;
use std::io::{self, BufReader, Chain, Cursor, ErrorKind, Read};

use flate2::bufread::MultiGzDecoder;

/// Unpacked bytes before the ratio is checked.
const FREE: u64 = 64 << 20;

/// Unpacked bytes per compressed byte above which a file is refused. DEFLATE reaches 1032 for zeros alone; captures
/// have 2 to 20, those of zeros in full packets about 50.
const RATIO_MAX: u64 = 500;

/// A capture file, plain or unpacked.
pub struct Input<R>(Kind<R>);

type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

enum Kind<R> {
    Plain(Whole<R>),
    Packed { decoder: Box<MultiGzDecoder<BufReader<CountingReader<Whole<R>>>>>, unpacked: u64 },
}

/// A stream that counts the bytes read from it.
struct CountingReader<R> {
    input: R,
    read: u64,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(to)?;
        self.read += read as u64;
        Ok(read)
    }
}

impl<R: Read> Input<R> {
    /// Reads the first two bytes, which show whether the file is compressed by gzip.
    pub fn new(mut input: R) -> io::Result<Self> {
        let mut magic = Vec::new();
        input.by_ref().take(2).read_to_end(&mut magic)?;
        let packed = magic == [0x1f, 0x8b];
        let whole = Cursor::new(magic).chain(input);
        Ok(Input(if packed {
            Kind::Packed {
                decoder: Box::new(MultiGzDecoder::new(BufReader::new(CountingReader { input: whole, read: 0 }))),
                unpacked: 0,
            }
        } else {
            Kind::Plain(whole)
        }))
    }

    /// Returns the compressed bytes read so far; `None` if the file is not compressed.
    pub fn packed(&self) -> Option<u64> {
        match &self.0 {
            Kind::Plain(_) => None,
            Kind::Packed { decoder, .. } => Some(decoder.get_ref().get_ref().read),
        }
    }

    /// Returns the most bytes that a file of `length` bytes can hold.
    pub fn unpacked_max(&self, length: u64) -> u64 {
        match &self.0 {
            Kind::Plain(_) => length,
            Kind::Packed { .. } => unpacked_max(length),
        }
    }
}

fn unpacked_max(packed: u64) -> u64 {
    packed.saturating_mul(RATIO_MAX).max(FREE)
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let (decoder, unpacked) = match &mut self.0 {
            Kind::Plain(whole) => return whole.read(to),
            Kind::Packed { decoder, unpacked } => (decoder, unpacked),
        };
        let read = decoder.read(to).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => wrong("it ends before its compressed data do"),
            ErrorKind::InvalidInput | ErrorKind::InvalidData => wrong(&error.to_string()),
            _ => error,
        })?;
        *unpacked += read as u64;
        if *unpacked > unpacked_max(decoder.get_ref().get_ref().read) {
            return Err(wrong(&format!("more than {RATIO_MAX} times its size; if it is a capture, use gunzip first")));
        }
        Ok(read)
    }
}

/// Error of the compressed data, as opposed to an error of reading.
#[derive(Debug)]
pub(crate) struct Unpacking(String);

fn wrong(message: &str) -> io::Error {
    io::Error::other(Unpacking(message.into()))
}

impl fmt::Display for Unpacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot be unpacked: {}", self.0)
    }
}

impl std::error::Error for Unpacking {}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::Reader;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Zeros of `mega` MiB behind `head`.
    fn bomb(head: &[u8], mega: usize) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(head).unwrap();
        for _ in 0..mega {
            encoder.write_all(&[0; 1 << 20]).unwrap();
        }
        encoder.finish().unwrap()
    }

    /// The head of a pcap with microseconds.
    const HEAD: [u8; 24] = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];

    /// The message with which reading ends, and how many bytes of the file were read until then.
    fn refused(file: &[u8]) -> (String, u64) {
        let mut reader = match Reader::new(Input::new(file).unwrap()) {
            Err(error) => return (error.to_string(), 0),
            Ok(reader) => reader,
        };
        loop {
            match reader.next_record() {
                Ok(Some(_)) => {}
                Ok(None) => return (String::new(), reader.input().packed().unwrap()),
                Err(error) => return (error.to_string(), reader.input().packed().unwrap()),
            }
        }
    }

    #[test]
    fn a_compressed_file_reads_as_its_contents_also_in_several_members() {
        let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
        let members = [packed(&bytes[..1000]), packed(&bytes[1000..])].concat();
        for (file, compressed) in [(bytes.clone(), false), (packed(&bytes), true), (members, true)] {
            let mut input = Input::new(&file[..]).unwrap();
            let mut read = Vec::new();
            input.read_to_end(&mut read).unwrap();
            assert!(read == bytes);
            assert_eq!(input.packed(), compressed.then_some(file.len() as u64));
        }
    }

    #[test]
    fn a_file_that_is_no_capture_is_refused_after_its_first_block() {
        let file = bomb(&[], 60);
        let mut input = Input::new(&file[..]).unwrap();
        assert_eq!(Reader::new(&mut input).err().unwrap().to_string(), "not a pcap or pcapng");
        assert!(input.packed().unwrap() < file.len() as u64 / 2);
    }

    #[test]
    fn a_bomb_that_begins_as_a_capture_is_refused_before_it_is_unpacked() {
        let file = bomb(&HEAD, 200);
        let (message, read) = refused(&file);
        assert_eq!(message, "cannot be unpacked: more than 500 times its size; if it is a capture, use gunzip first");
        // 64 MiB are free, and another 136 MiB stay unread.
        assert!(read < file.len() as u64 / 2, "{read} of {}", file.len());
    }

    #[test]
    fn a_damaged_file_says_so() {
        let whole = packed(&[&HEAD[..], &[0; 16].repeat(100)].concat());
        assert_eq!(refused(&whole).0, "");
        assert_eq!(refused(&whole[..whole.len() - 9]).0, "cannot be unpacked: it ends before its compressed data do");
        let mut damaged = whole.clone();
        let sum = whole.len() - 5;
        damaged[sum] ^= 1;
        assert!(refused(&damaged).0.starts_with("cannot be unpacked: "), "{}", refused(&damaged).0);
    }
}
