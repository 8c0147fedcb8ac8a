//! `/metrics`: the counters in the text format of Prometheus.

use std::fmt::Write;

use crate::server::stats::{PEAK, Stats};

/// How many there are now, in contrast to how many there were.
const GAUGES: [&str; 2] = ["live_executions", PEAK];

/// The text that a scraper reads.
pub(super) fn text(stats: &Stats) -> String {
    let mut text = String::new();
    let serde_json::Value::Object(stats) = serde_json::json!(stats) else { return text };
    for (name, value) in stats {
        let (kind, suffix) = if GAUGES.contains(&name.as_str()) { ("gauge", "") } else { ("counter", "_total") };
        // writing to a string cannot fail
        writeln!(text, "# TYPE vgi_worker_{name}{suffix} {kind}\nvgi_worker_{name}{suffix} {value}").ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_type_and_a_value() {
        let text = text(&Stats { live_executions: 2, process_calls: 7, ..Stats::default() });
        assert!(text.contains("# TYPE vgi_worker_live_executions gauge\nvgi_worker_live_executions 2\n"), "{text}");
        assert!(text.contains("# TYPE vgi_worker_process_calls_total counter\nvgi_worker_process_calls_total 7\n"));
        assert!(text.lines().all(|line| line.starts_with("# TYPE vgi_worker_") || line.split(' ').count() == 2));
    }
}
