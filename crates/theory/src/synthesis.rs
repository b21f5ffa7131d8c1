//! Stability over ranges of networks, its boundary as a curve, and designs that hold over a range.

pub mod boundary;
pub mod maps;
pub mod robust;
