//! Whether a request is compressed, and how. A pure decision: what was measured goes in, a coding comes out.
//!
//! Compressing pays where the link is slower than the compressor, less what the compressor leaves over: sending `n` bytes takes `n / link`,
//! compressing and sending them `n / speed + n / (ratio · link)`.

use std::time::Duration;

use crate::capabilities::Capabilities;

/// Below this a body fits a few packets however it is written.
const SMALLEST: usize = 1 << 10;
/// Exchanges below this measure how long the way is, not how wide.
const MEASURED: usize = 64 << 10;
/// How many exchanges are measured before anything is decided.
const EXCHANGES: u32 = 2;
/// Data that do not shrink are tried again after so many requests, since the next ones may be of another kind.
const SECOND_CHANCE: u32 = 64;
/// What is expected of a compressor before it has been measured, in bytes per second and as a factor.
const ZSTD: (f64, f64) = (500e6, 3.0);
const GZIP: (f64, f64) = (60e6, 3.0);

/// What a caller wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Where it makes requests faster, as far as can be measured.
    #[default]
    Auto,
    /// Never; replies are not asked to be compressed either.
    Off,
    /// Wherever the server can read it and it is not on this machine.
    Always,
}

/// A way to write a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Zstd,
    Gzip,
}

impl Coding {
    /// The word on the wire.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }
}

/// What the exchanges with one server have taught.
#[derive(Clone, Debug, Default)]
pub(crate) struct Experience {
    exchanges: u32,
    /// Bytes per second. The time of an exchange includes the server's own, so each measures less than the link can do, and the fastest
    /// comes nearest.
    link: f64,
    /// Speed and ratio of the latest compressions.
    compressor: Option<(f64, f64)>,
    /// Requests since the data did not shrink.
    passed: u32,
    /// The server refused a coding that it should know.
    refused: bool,
}

impl Experience {
    /// An exchange that moved so many bytes, as they were on the wire.
    pub(crate) fn exchanged(&mut self, bytes: usize, took: Duration) {
        if bytes >= MEASURED && !took.is_zero() {
            self.exchanges = self.exchanges.saturating_add(1);
            self.link = self.link.max(float(bytes) / took.as_secs_f64());
        }
    }

    /// A body that was compressed.
    pub(crate) fn compressed(&mut self, before: usize, after: usize, took: Duration) {
        let now = (float(before) / took.as_secs_f64().max(1e-9), float(before) / float(after.max(1)));
        self.compressor = Some(match self.compressor {
            Some((speed, ratio)) => (f64::midpoint(speed, now.0), f64::midpoint(ratio, now.1)),
            None => now,
        });
        self.passed = 0;
    }

    /// The server does not take compressed requests.
    pub(crate) fn refuse(&mut self) {
        self.refused = true;
    }

    /// A request that is about to be written.
    pub(crate) fn asked(&mut self) {
        self.passed = self.passed.saturating_add(1);
    }

    fn pays(&self, coding: Coding) -> bool {
        if self.exchanges < EXCHANGES {
            return false;
        }
        let expected = if coding == Coding::Zstd { ZSTD } else { GZIP };
        let measured = self.compressor.filter(|_| self.passed < SECOND_CHANCE);
        let (speed, ratio) = measured.unwrap_or(expected);
        self.link < speed * (1.0 - 1.0 / ratio.max(1.0))
    }
}

/// How a body of that length is written; `None` as it is.
pub(crate) fn choose(
    wanted: Compression,
    loopback: bool,
    length: usize,
    server: &Capabilities,
    experience: &Experience,
) -> Option<Coding> {
    if wanted == Compression::Off || loopback || length < SMALLEST || experience.refused {
        return None;
    }
    let coding = readable(server)?;
    (wanted == Compression::Always || experience.pays(coding)).then_some(coding)
}

/// The best coding that the server reads. One that announces much but no codings is older than the announcement, and reads zstd; of one
/// that announces nothing at all nothing is known.
fn readable(server: &Capabilities) -> Option<Coding> {
    let Some(codings) = &server.supported_encodings else {
        return server.announced.then_some(Coding::Zstd);
    };
    [Coding::Zstd, Coding::Gzip].into_iter().find(|coding| codings.iter().any(|name| name == coding.name()))
}

#[expect(clippy::cast_precision_loss, reason = "a measurement is not exact anyway")]
fn float(bytes: usize) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(codings: Option<&[&str]>) -> Capabilities {
        let supported_encodings = codings.map(|names| names.iter().map(|&name| name.to_owned()).collect());
        Capabilities { announced: true, supported_encodings, ..Capabilities::default() }
    }

    fn link(rate: usize) -> Experience {
        let mut experience = Experience::default();
        for _ in 0..EXCHANGES {
            experience.exchanged(rate, Duration::from_secs(1));
        }
        experience
    }

    const MEGA: usize = 1_000_000;

    #[test]
    fn the_decision_as_a_table() {
        use Compression::{Always, Auto, Off};
        let both = server(Some(&["zstd", "gzip"]));
        let gzip = server(Some(&["gzip"]));
        let (none, other, legacy) = (server(Some(&[])), server(Some(&["br"])), server(None));
        let silent = Capabilities::default();
        let (slow, fast, unknown) = (link(10 * MEGA), link(900 * MEGA), Experience::default());
        let (zstd, packed) = (Some(Coding::Zstd), Some(Coding::Gzip));
        for (wanted, loopback, length, server, experience, expected) in [
            (Auto, false, MEGA, &both, &slow, zstd),
            (Auto, false, MEGA, &both, &fast, None),
            (Auto, false, MEGA, &both, &unknown, None),
            (Auto, true, MEGA, &both, &slow, None),
            (Auto, false, 1023, &both, &slow, None),
            (Auto, false, 1024, &both, &slow, zstd),
            (Auto, false, MEGA, &gzip, &slow, packed),
            (Auto, false, MEGA, &gzip, &link(50 * MEGA), None),
            (Auto, false, MEGA, &both, &link(50 * MEGA), zstd),
            (Auto, false, MEGA, &none, &slow, None),
            (Auto, false, MEGA, &other, &slow, None),
            (Auto, false, MEGA, &legacy, &slow, zstd),
            (Auto, false, MEGA, &silent, &slow, None),
            (Off, false, MEGA, &both, &slow, None),
            (Always, false, MEGA, &both, &fast, zstd),
            (Always, false, MEGA, &both, &unknown, zstd),
            (Always, false, MEGA, &gzip, &unknown, packed),
            (Always, true, MEGA, &both, &slow, None),
            (Always, false, 1023, &both, &slow, None),
            (Always, false, MEGA, &none, &slow, None),
            (Always, false, MEGA, &silent, &slow, None),
        ] {
            let chosen = choose(wanted, loopback, length, server, experience);
            assert_eq!(chosen, expected, "{wanted:?} {loopback} {length} {server:?} {experience:?}");
        }
    }

    #[test]
    fn data_that_do_not_shrink_are_left_alone_for_a_while() {
        let both = server(Some(&["zstd"]));
        let mut experience = link(10 * MEGA);
        experience.compressed(MEGA, MEGA, Duration::from_millis(2));
        let choose = |experience: &Experience| choose(Compression::Auto, false, MEGA, &both, experience);
        assert_eq!(choose(&experience), None);
        for _ in 0..SECOND_CHANCE {
            experience.asked();
        }
        assert_eq!(choose(&experience), Some(Coding::Zstd));
        experience.compressed(MEGA, MEGA / 4, Duration::from_millis(2));
        assert_eq!(choose(&experience), Some(Coding::Zstd));
    }

    #[test]
    fn a_slow_compressor_and_a_refusal_are_learnt() {
        let both = server(Some(&["zstd"]));
        let mut experience = link(100 * MEGA);
        experience.compressed(MEGA, MEGA / 4, Duration::from_millis(20));
        assert_eq!(
            choose(Compression::Auto, false, MEGA, &both, &experience),
            None,
            "50 MB/s are slower than the link"
        );
        experience.refuse();
        assert_eq!(choose(Compression::Always, false, MEGA, &both, &experience), None);
    }

    #[test]
    fn small_exchanges_measure_nothing_and_the_fastest_counts() {
        let mut experience = Experience::default();
        for _ in 0..10 {
            experience.exchanged(1000, Duration::from_millis(1));
        }
        assert_eq!((experience.exchanges, experience.link), (0, 0.0));
        experience.exchanged(MEGA, Duration::from_millis(10));
        experience.exchanged(MEGA, Duration::from_secs(10));
        assert!(experience.link > 90e6);
    }
}
