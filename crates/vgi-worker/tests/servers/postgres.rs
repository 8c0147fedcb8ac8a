//! PostgreSQL.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use libtest_mimic::Trial;
use vgi_worker::ExecutionId;
use vgi_worker::storage::{Backend, Storage, StorageError};

use crate::deployment::{self, Deployment};
use crate::servers::{PostgresServer, free_port, postgres_programs};
use crate::{conformance, trial};

/// One server for all tests that do not end it, started by the first: making one takes seconds.
pub type Shared = Arc<Mutex<Option<Arc<PostgresServer>>>>;

pub fn shared() -> Shared {
    Arc::default()
}

fn server(shared: &Shared) -> Arc<PostgresServer> {
    let mut server = shared.lock().unwrap();
    Arc::clone(server.get_or_insert_with(|| Arc::new(PostgresServer::start())))
}

/// Ends the server that all tests share.
pub fn end(shared: &Shared) {
    drop(shared.lock().unwrap().take());
}

pub fn trials(shared: &Shared) -> Vec<Trial> {
    let missing = postgres_programs().is_none().then_some("postgresql");
    // a database of its own for each
    let test = |name: &'static str, test: fn(&PostgresServer, &str)| {
        let shared = Arc::clone(shared);
        trial(&format!("postgres::{name}"), missing, move || {
            let server = server(&shared);
            server.create(name);
            test(&server, name);
        })
    };
    vec![
        test("it_conforms", it_conforms),
        test("what_was_written_late_ends_too", what_was_written_late_ends_too),
        test("a_lost_connection_is_made_again", a_lost_connection_is_made_again),
        test("a_wrong_password_is_refused", a_wrong_password_is_refused),
        test("tables_may_be_there_already", tables_may_be_there_already),
        test("it_may_be_used_from_anywhere", it_may_be_used_from_anywhere),
        test("requests_reach_different_processes", |server, database| {
            scenario(server, database, deployment::consecutive_requests_may_reach_different_processes);
        }),
        test("a_process_that_dies_fails_its_call_alone", |server, database| {
            scenario(server, database, deployment::a_process_that_dies_fails_its_call_alone);
        }),
        test("a_thousand_executions_leave_nothing", |server, database| {
            scenario(server, database, deployment::a_thousand_executions_at_once_leave_nothing);
        }),
        trial("postgres::a_crash_ends_all_executions", missing, a_crash_ends_all_executions),
    ]
}

fn scenario(server: &PostgresServer, database: &str, scenario: fn(&Deployment)) {
    let rest = || server.rows(database);
    scenario(&Deployment { storage: server.url(database), rest: &rest });
}

fn open(server: &PostgresServer, database: &str) -> Arc<dyn Storage> {
    server.url(database).parse::<Backend>().unwrap().open().unwrap()
}

fn it_conforms(server: &PostgresServer, database: &str) {
    conformance::check(&*open(server, database));
    assert_eq!(server.rows(database), 0);
}

/// Writers and the end of their execution meet; whatever they leave belongs to nothing.
fn what_was_written_late_ends_too(server: &PostgresServer, database: &str) {
    let storage = open(server, database);
    for round in 0..20_u8 {
        let id = ExecutionId::from(vec![round]);
        storage.begin(&id).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut written = 0;
                    while let Ok(position) = storage.append(&id, "log", Bytes::from(vec![0; 5000])) {
                        assert!(position >= written);
                        written = position;
                        storage.put(&id, "k", Bytes::new()).ok();
                        storage.push(&id, "q", Bytes::new()).ok();
                        storage.pop(&id, "q").ok();
                        storage.count(&id, "n", 1).ok();
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(30));
            assert!(storage.end(&id).unwrap());
        });
    }
    assert_eq!(server.rows(database), 0);
}

fn a_lost_connection_is_made_again(server: &PostgresServer, database: &str) {
    let storage = open(server, database);
    let id = ExecutionId::new("one");
    storage.begin(&id).unwrap();
    storage.put(&id, "k", Bytes::from_static(b"1")).unwrap();
    let kill = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{database}' AND pid <> pg_backend_pid()"
    );
    assert_eq!(server.ask(database, &kill), Some(1));
    // the first call may notice or not
    if let Err(error) = storage.get(&id, "k") {
        assert!(matches!(error, StorageError::Lost { .. }), "{error}");
    }
    assert_eq!(storage.get(&id, "k").unwrap().unwrap(), "1");
    storage.end(&id).unwrap();
}

fn a_wrong_password_is_refused(server: &PostgresServer, database: &str) {
    let refused = |url: &str| {
        let error = url.parse::<Backend>().unwrap().open().map(|_| ()).unwrap_err();
        assert!(matches!(error, StorageError::Refused { .. }), "{error}");
        error.to_string()
    };
    let address = server.address();
    let error = refused(&format!("postgres://ann:wr0ng@{address}/{database}"));
    assert!(!error.contains("wr0ng") && !error.contains("ann"), "{error}");
    assert!(
        error.starts_with(&format!("the storage at postgres://{address}/{database} refuses this worker: ")),
        "{error}"
    );
    refused(&format!("postgres://ann@{address}/{database}"));
    let error = refused(&server.url("no_such_database"));
    assert!(error.contains("no_such_database") && !error.contains("s3same"), "{error}");
    let backend: Backend = format!("postgres://ann:s3same@127.0.0.1:{}/state", free_port()).parse().unwrap();
    let error = backend.open().map(|_| ()).unwrap_err();
    assert!(matches!(error, StorageError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("Connection refused") && !error.to_string().contains("s3same"), "{error}");
}

/// Many processes start at once, and one whose user may not make tables comes later.
fn tables_may_be_there_already(server: &PostgresServer, database: &str) {
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| open(server, database).live().unwrap());
        }
    });
    server.ask(database, "CREATE USER bob PASSWORD 'bobs'");
    server.ask(database, "GRANT USAGE ON SCHEMA vgi_worker TO bob");
    server.ask(database, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA vgi_worker TO bob");
    let storage =
        format!("postgres://bob:bobs@{}/{database}", server.address()).parse::<Backend>().unwrap().open().unwrap();
    let id = ExecutionId::new("one");
    storage.begin(&id).unwrap();
    storage.append(&id, "log", Bytes::new()).unwrap();
    assert!(storage.end(&id).unwrap());
    let error = format!("postgres://bob:bobs@{}/postgres", server.address()).parse::<Backend>().unwrap().open();
    let error = error.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("permission denied"), "{error}");
}

fn it_may_be_used_from_anywhere(server: &PostgresServer, database: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let storage = open(server, database);
        assert_eq!(storage.live().unwrap(), 0);
        drop(storage);
    });
}

fn a_crash_ends_all_executions() {
    let mut server = PostgresServer::start();
    let storage = open(&server, "postgres");
    let secret = storage.shared_secret([5; 32]).unwrap();
    let id = ExecutionId::new("one");
    storage.begin(&id).unwrap();
    storage.append(&id, "log", Bytes::from_static(b"x")).unwrap();
    server.crash();
    storage.get(&id, "k").unwrap_err();
    let error = storage.get(&id, "k").unwrap_err();
    assert!(matches!(error, StorageError::Unreachable { .. }), "{error}");
    server.resume();
    let error = storage.append(&id, "log", Bytes::new()).unwrap_err();
    assert!(matches!(error, StorageError::UnknownExecution(_)), "{error}");
    assert_eq!(storage.shared_secret([6; 32]).unwrap(), secret);
    assert_eq!(server.rows("postgres"), 0);
}
