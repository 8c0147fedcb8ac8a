//! Several processes that share a storage: any request of an execution may reach any of them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::cast_precision_loss, reason = "the numbers are small")]

#[path = "support/deployment.rs"]
mod deployment;
#[path = "support/proxy.rs"]
mod proxy;
mod support;
#[path = "support/worker.rs"]
mod worker;

use deployment::{Deployment, rows};
use support::{Call, Client, http, remote, start};
use vgi_worker::{Credential, Options};

/// Runs a scenario on a new database of SQLite.
fn on_sqlite(scenario: impl FnOnce(&Deployment)) {
    let folder = tempfile::tempdir().unwrap();
    let files = || std::fs::read_dir(folder.path().join("state.db-files")).unwrap().count();
    let storage = format!("sqlite:{}", folder.path().join("state.db").display());
    scenario(&Deployment { storage, rest: &files });
}

#[test]
fn consecutive_requests_may_reach_different_processes() {
    on_sqlite(deployment::consecutive_requests_may_reach_different_processes);
}

#[test]
fn a_process_that_dies_fails_its_call_alone() {
    on_sqlite(deployment::a_process_that_dies_fails_its_call_alone);
}

#[test]
fn a_thousand_executions_at_once_leave_nothing() {
    on_sqlite(deployment::a_thousand_executions_at_once_leave_nothing);
}

#[test]
fn an_execution_is_its_principals_own() {
    let credential = |name: &str| Credential { principal: name.to_owned(), token: format!("{name}'s token") };
    let server = start(Options { credentials: vec![credential("ann"), credential("bob")], ..Options::default() });
    let without = http(server.address(), "GET", "/stats", &[], b"");
    assert_eq!((without.status, without.header("vgi-auth-reason")), (401, Some("missing_token")));
    let wrong = http(server.address(), "POST", "/vgi.v2/bind", &[("authorization", "Bearer no")], b"");
    assert_eq!((wrong.status, wrong.header("vgi-auth-reason")), (401, Some("invalid_token")));
    assert_eq!(http(server.address(), "GET", "/health", &[], b"").status, 200);

    let client = |name: &str| Client { token: Some(format!("{name}'s token")), ..Client::new(&server) };
    let input = rows(0, 10);
    let mut execution = client("ann").begin(&Call::new("buffer_input"), &input.schema()).unwrap();
    let id = execution.process(&input, None).unwrap().0;
    let streams = execution.combine(vec![id]).unwrap().0;
    let turn = execution.open_stream(&streams[0]).unwrap();
    execution.client = client("bob");
    for error in [
        remote(execution.process(&input, None)),
        remote(execution.combine(Vec::new())),
        remote(execution.open_stream(&streams[0])),
    ] {
        assert_eq!(error.exception_type.as_deref(), Some("UnknownExecutionError"));
    }
    if let Some(cursor) = turn.cursor {
        let tokens = vgi_wire::reply::Tokens { cursor, call: turn.call };
        let error = remote(execution.client.turn(&tokens));
        assert_eq!(error.exception_type.as_deref(), Some("InvalidStateTokenError"));
    }
    // nor can another end it
    execution.destroy();
    assert_eq!(server.stats().live_executions, 1);
    execution.client = client("ann");
    assert_eq!(execution.drain(&streams[0]).unwrap()[0].batches, [input]);
    execution.destroy();
    assert_eq!(server.stats().live_executions, 0);
}
