//! The protocols that are served on one port.
//!
//! The minor versions of `vgi.v2` and the first of `vgi.v3` agree in nearly all that a buffered call and discovery need: requests are read
//! by name, and replies are read by name too, so the records of the newest one serve all of them, with one column more for old clients.

/// A protocol with the versions of it that are understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Protocol {
    pub(super) name: &'static str,
    /// The version that is announced.
    pub(super) version: &'static str,
    major: u32,
    minors: std::ops::RangeInclusive<u32>,
}

/// What [`Protocol::accepts`] finds wrong with a client's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mismatch {
    Undeclared,
    ClientTooOld,
    ClientTooNew,
}

const V2: Protocol = Protocol { name: "vgi.v2", version: "2.2.0", major: 2, minors: 0..=2 };
const V3: Protocol = Protocol { name: "vgi.v3", version: "3.0.0", major: 3, minors: 0..=0 };

/// All of them, the one that `/health` names first.
pub(super) static PROTOCOLS: [Protocol; 2] = [V2, V3];

impl Protocol {
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        PROTOCOLS.iter().find(|protocol| protocol.name == name)
    }

    /// Only major and minor version must agree with one of this protocol's; the patch must be there, but does not matter.
    pub(super) fn accepts(&self, version: Option<&str>) -> Result<(), Mismatch> {
        let (major, minor) = version.and_then(parse).ok_or(Mismatch::Undeclared)?;
        if (major, minor) < (self.major, *self.minors.start()) {
            return Err(Mismatch::ClientTooOld);
        }
        if (major, minor) > (self.major, *self.minors.end()) {
            return Err(Mismatch::ClientTooNew);
        }
        Ok(())
    }
}

/// Whether a client of this version wants to read in each listed schema which attachment it belongs to.
pub(super) fn wants_attachments(version: Option<&str>) -> bool {
    version.and_then(parse).is_some_and(|version| version < (2, 2))
}

/// Their names, for messages.
pub(super) fn names() -> String {
    PROTOCOLS.iter().map(|protocol| protocol.name).collect::<Vec<_>>().join(", ")
}

fn parse(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    let (major, minor, _patch) = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some((major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_major_and_minor_must_agree() {
        for good in ["2.0.0", "2.1.3", "2.2.0", "2.2.7"] {
            assert_eq!(V2.accepts(Some(good)), Ok(()), "{good}");
        }
        assert_eq!(V3.accepts(Some("3.0.1")), Ok(()));
        assert_eq!(V2.accepts(Some("1.3.0")), Err(Mismatch::ClientTooOld));
        assert_eq!(V3.accepts(Some("2.2.0")), Err(Mismatch::ClientTooOld));
        assert_eq!(V2.accepts(Some("2.3.0")), Err(Mismatch::ClientTooNew));
        assert_eq!(V2.accepts(Some("3.0.0")), Err(Mismatch::ClientTooNew));
        for undeclared in [Some("2.2"), Some("2.2.0.0"), Some("2.x.0"), None] {
            assert_eq!(V2.accepts(undeclared), Err(Mismatch::Undeclared), "{undeclared:?}");
        }
    }

    #[test]
    fn old_clients_want_a_column_more() {
        assert!(wants_attachments(Some("2.0.0")) && wants_attachments(Some("2.1.0")));
        assert!(!wants_attachments(Some("2.2.0")) && !wants_attachments(Some("3.0.0")) && !wants_attachments(None));
    }

    #[test]
    fn a_protocol_accepts_what_it_announces() {
        for protocol in &PROTOCOLS {
            assert_eq!(protocol.accepts(Some(protocol.version)), Ok(()));
        }
    }
}
