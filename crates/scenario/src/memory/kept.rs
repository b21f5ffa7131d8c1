//! What the packet engine keeps of a packet, bytes. The engine's files hold what they keep to these figures.

/// An event: a packet on its way, with the moment when it gets there.
pub const EVENT: usize = 32;
/// Events of the same short time lie in a list, which has room for eight from the first on; there are so many
/// lists.
pub const TOGETHER: usize = 8;
/// See [`TOGETHER`].
pub const LISTS: usize = 4096;
/// A packet that waits at a port, beside the event of its departure.
pub const IN_FIFO: usize = 32;
/// How long a queue had one length.
pub const LEVEL: usize = 8;
/// A delivery that is worked out ahead of the next edge of a window, with what is measured of it.
pub const DELIVERY: usize = 20;
/// A transfer or a page that was delivered.
pub const REQUEST: usize = 48;

/// A list grows by doubling. What it has room for and does not hold yet takes no memory, but pieces that it grew out of
/// are left behind, and lists that were longer before keep their room.
pub(crate) const GROWN: f64 = 1.5;
