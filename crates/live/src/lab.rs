//! The laboratory: the kernel's own TCP over links of a plan, in network namespaces that end with the program.
//!
//! - `namespace` makes anonymous namespaces and sets them up, `tun` the devices through which their packets come here;
//! - `network` is the plan's links in virtual time, `pump` carries packets between devices and network and says how
//!   late it was; `gso` splits and joins super-packets for it, `ceiling` measures how many packets a machine can carry,
//!   `machine` asks it to stay awake.

pub mod ceiling;
pub mod clock;
pub mod command;
pub mod gso;
pub mod hosts;
pub mod ip;
pub mod kernel;
pub mod machine;
pub mod namespace;
pub mod network;
pub mod pump;
pub mod report;
pub mod run;
pub mod thread;
pub mod tun;
pub mod world;
