//! Packet rules: `--spare` exempts packets from marks and drops, `--only` selects the packets that are regulated.

use super::values::{invalid, pairs};
use crate::Error;

/// Rules; a packet matches if it fits any of them. `struct rules` of the marker.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) dscps: u64,
    pub(crate) protocols: [u64; 4],
    pub(crate) kinds: u32,
    pub(crate) mark: u32,
    pub(crate) mask: u32,
    /// Padding, always zero.
    pub(crate) unused: u32,
    pub(crate) ports: [u16; 8],
}

// The bits of `kinds`.
const BY_DSCP: u32 = 1;
const BY_PROTOCOL: u32 = 2;
const BY_MARK: u32 = 4;
const BY_PORT: u32 = 8;

/// Names of common code points.
const DSCPS: [(&str, u8); 4] = [("ef", 46), ("cs6", 48), ("cs7", 56), ("va", 44)];
const PROTOCOLS: [(&str, u8); 7] =
    [("icmp", 1), ("tcp", 6), ("udp", 17), ("gre", 47), ("esp", 50), ("icmpv6", 58), ("sctp", 132)];

impl Rules {
    /// Whether there is no rule.
    pub(super) fn is_empty(&self) -> bool {
        self.kinds == 0
    }

    /// Adds the rules of `text`, the value of `option`.
    pub(super) fn add(&mut self, option: &'static str, text: &str) -> Result<(), Error> {
        let number = |value: &str| match value.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => value.parse().ok(),
        };
        let named = |known: &[(&str, u8)], value: &str, most: u32| {
            let name = value.to_lowercase();
            let known = known.iter().find(|(other, _)| *other == name).map(|(_, number)| u32::from(*number));
            known.or_else(|| number(value)).filter(|number| *number <= most)
        };
        for pair in pairs(option, text) {
            let (name, value) = pair?;
            let misfit = |accepted: &str| invalid(&format!("{option} {name}"), value, accepted);
            match name {
                "dscp" => {
                    let dscp =
                        named(&DSCPS, value, 63).ok_or_else(|| misfit("must be 0 to 63, or ef, va, cs6, cs7"))?;
                    self.dscps |= 1 << dscp;
                    self.kinds |= BY_DSCP;
                }
                "protocol" => {
                    let accepted = "must be 0 to 255, or icmp, tcp, udp, gre, esp, icmpv6, sctp";
                    let protocol = named(&PROTOCOLS, value, 255).ok_or_else(|| misfit(accepted))?;
                    self.protocols[protocol as usize / 64] |= 1 << (protocol % 64);
                    self.kinds |= BY_PROTOCOL;
                }
                "mark" => {
                    let (mark, mask) = value.split_once('/').unwrap_or((value, "0xffffffff"));
                    let both = number(mark).zip(number(mask)).filter(|(mark, mask)| mark & !mask == 0);
                    (self.mark, self.mask) =
                        both.ok_or_else(|| misfit("must be MARK or MARK/MASK with MARK inside MASK"))?;
                    if self.kinds & BY_MARK != 0 {
                        return Err(misfit("only one mark can be given; combine several by a mask"));
                    }
                    self.kinds |= BY_MARK;
                }
                "port" => {
                    let port = number(value).and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
                    let port = port.ok_or_else(|| misfit("must be 1 to 65535"))?;
                    let most = self.ports.len();
                    let free = self.ports.iter_mut().find(|free| **free == 0 || **free == port);
                    *free.ok_or_else(|| misfit(&format!("at most {most} ports can be given")))? = port;
                    self.kinds |= BY_PORT;
                }
                _ => return Err(invalid(option, name, "choose from: dscp, protocol, mark, port")),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> Result<Rules, String> {
        let mut rules = Rules::default();
        let added = texts.iter().try_for_each(|text| rules.add("spare", text));
        added.map(|()| rules).map_err(|error| error.to_string())
    }

    #[test]
    fn rules_add_up() {
        // Protocols are bits of four words of 64: 47 of the first, 132 = 2 x 64 + 4 of the third, the last of the last.
        let protocols = rules(&["protocol=gre", "protocol=sctp,protocol=255,protocol=GRE"]).unwrap();
        assert_eq!((protocols.kinds, protocols.protocols), (2, [1 << 47, 0, 1 << 4, 1 << 63]));
        let classes = rules(&["dscp=ef,dscp=0,dscp=63"]).unwrap();
        assert_eq!((classes.kinds, classes.dscps), (1, 1 | 1 << 46 | 1 << 63));
        // A repeated port takes no entry.
        let ports = rules(&["port=22,port=443", "port=22,port=65535"]).unwrap();
        assert_eq!((ports.kinds, ports.ports), (8, [22, 443, 65_535, 0, 0, 0, 0, 0]));
        // A mark without a mask is all of the mark; hexadecimal or not.
        let mark = rules(&["mark=17,dscp=0x0a"]).unwrap();
        assert_eq!((mark.kinds, mark.mark, mark.mask, mark.dscps), (1 | 4, 17, u32::MAX, 1 << 10));
        assert!(!mark.is_empty() && rules(&[]).unwrap().is_empty());
    }

    #[test]
    fn more_than_eight_ports_are_refused() {
        let ports: Vec<String> = (1..=9).map(|port| format!("port={port}")).collect();
        let error = rules(&[&ports.join(",")]).unwrap_err();
        assert_eq!(error, "--spare port \"9\": at most 8 ports can be given");
    }
}
