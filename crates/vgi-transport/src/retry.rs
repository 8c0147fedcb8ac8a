//! When a request is sent again, and after how long. Nothing that the server may have acted on is repeated, unless repeating it changes
//! nothing there.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode, header};

use crate::error::{ErrorKind, Fault};
use crate::exchange::Reply;
use crate::options::Options;
use crate::verdict;

/// The pause after the first failure, without jitter; it doubles with every further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Only what no byte was sent of: a chunk that arrives twice is counted twice.
    Unsent,
    /// Also what a server, or a gateway before it, refused for the moment: discovery, bind, destructor.
    Refused,
    /// Also what was answered with a reply that got lost: a token gives the same turn again.
    Lost,
}

/// How often and how long a caller wants to try.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retries {
    count: u32,
    budget: Duration,
}

impl From<&Options> for Retries {
    fn from(options: &Options) -> Self {
        Self { count: options.retries, budget: options.retry_budget }
    }
}

/// The attempts of one request.
pub(crate) struct Attempts {
    retries: Retries,
    repeat: Repeat,
    pub(crate) made: u32,
    paused: Duration,
}

impl Attempts {
    pub(crate) fn new(retries: Retries, repeat: Repeat) -> Self {
        Self { retries, repeat, made: 0, paused: Duration::ZERO }
    }

    /// The pause before the next attempt; `None` when the outcome stands.
    pub(crate) fn pause(&mut self, outcome: &Result<Reply, Fault>) -> Option<Duration> {
        self.made = self.made.saturating_add(1);
        let asked = match outcome {
            Err(fault) if fault.unsent => None,
            Err(fault) if fault.kind == ErrorKind::Http && self.repeat == Repeat::Lost => None,
            Ok(reply) if self.repeat != Repeat::Unsent && is_passing(reply) => {
                retry_after(&reply.headers, SystemTime::now())
            }
            _ => return None,
        };
        if self.made > self.retries.count {
            return None;
        }
        let pause = asked.unwrap_or_else(|| jittered(backoff(self.made), random()));
        let paused = self.paused.saturating_add(pause);
        // a server that wants more patience than there is gets none
        if paused > self.retries.budget {
            return None;
        }
        self.paused = paused;
        Some(pause)
    }
}

fn backoff(made: u32) -> Duration {
    let factor = 1_u32.checked_shl(made.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST_PAUSE.saturating_mul(factor).min(LONGEST_PAUSE)
}

/// Between half of the pause and the whole, so that clients that failed together do not come back together.
fn jittered(pause: Duration, random: u32) -> Duration {
    pause.mul_f64(0.5 + f64::from(random) / f64::from(u32::MAX) / 2.0)
}

fn random() -> u32 {
    let [a, b, c, d, ..] = RandomState::new().build_hasher().finish().to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// Whether the reply means "not now".
fn is_passing(reply: &Reply) -> bool {
    let transient = matches!(
        reply.status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    );
    // an Arrow body is the answer of the server itself, which says when it means a passing state
    transient && (reply.headers.contains_key(header::RETRY_AFTER) || !verdict::is_arrow(&reply.headers))
}

/// `Retry-After`, in seconds or as a date.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const RETRIES: Retries = Retries { count: 3, budget: Duration::from_secs(5) };

    type Outcome = Result<Reply, Fault>;

    fn bare(status: u16, headers: &[(&'static str, &str)]) -> Reply {
        Reply {
            url: "http://h/x".parse().unwrap(),
            status: StatusCode::from_u16(status).unwrap(),
            headers: headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect(),
            body: Bytes::new(),
            elapsed: Duration::ZERO,
            attempts: 1,
        }
    }

    fn unsent() -> Outcome {
        Err(Fault { unsent: true, ..Fault::new(ErrorKind::Connect, "") })
    }

    fn lost() -> Outcome {
        Err(Fault::new(ErrorKind::Http, "the connection broke"))
    }

    #[test]
    fn what_may_be_repeated_depends_on_the_call() {
        let arrow = [("content-type", verdict::ARROW)];
        let outcomes = [
            unsent(),
            Ok(bare(429, &[])),
            Ok(bare(502, &[])),
            Ok(bare(503, &[])),
            Ok(bare(504, &[])),
            lost(),
            Ok(bare(500, &[])),
            Ok(bare(401, &[])),
            Ok(bare(503, &arrow)),
            Err(Fault::new(ErrorKind::Timeout, "")),
        ];
        for (repeat, wanted) in [(Repeat::Unsent, 1), (Repeat::Refused, 5), (Repeat::Lost, 6)] {
            let repeated = outcomes
                .iter()
                .map(|outcome| Attempts::new(RETRIES, repeat).pause(outcome).is_some())
                .collect::<Vec<_>>();
            let expected: Vec<_> = (0..outcomes.len()).map(|position| position < wanted).collect();
            assert_eq!(repeated, expected, "{repeat:?}");
        }
    }

    #[test]
    fn count_and_budget_end_the_attempts() {
        let mut attempts = Attempts::new(RETRIES, Repeat::Refused);
        let pauses: Vec<_> = std::iter::from_fn(|| attempts.pause(&Ok(bare(503, &[])))).collect();
        assert_eq!(pauses.len(), 3);
        for (pause, whole) in pauses.iter().zip([200, 400, 800].map(Duration::from_millis)) {
            assert!(*pause >= whole / 2 && *pause <= whole, "{pause:?}");
        }
        let mut attempts = Attempts::new(RETRIES, Repeat::Refused);
        assert_eq!(attempts.pause(&Ok(bare(503, &[("retry-after", "3")]))), Some(Duration::from_secs(3)));
        assert_eq!(attempts.pause(&Ok(bare(503, &[("retry-after", "3")]))), None, "3 + 3 is more than 5");
        assert_eq!(Attempts::new(RETRIES, Repeat::Refused).pause(&Ok(bare(429, &[("retry-after", "86400")]))), None);
        let none = Retries { count: 0, ..RETRIES };
        assert_eq!(Attempts::new(none, Repeat::Lost).pause(&unsent()), None);
    }

    #[test]
    fn jitter_stays_between_half_and_whole() {
        let second = Duration::from_secs(1);
        assert_eq!(jittered(second, 0), second / 2);
        assert_eq!(jittered(second, u32::MAX), second);
        assert_eq!(backoff(u32::MAX), LONGEST_PAUSE);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
        let read = |value: &'static str| {
            let headers = [(header::RETRY_AFTER, value.parse().unwrap())].into_iter().collect();
            retry_after(&headers, now)
        };
        assert_eq!(read("7"), Some(Duration::from_secs(7)));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(7)));
        assert_eq!(read("Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("-1"), None);
        assert_eq!(read("soon"), None);
    }
}
