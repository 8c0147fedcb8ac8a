//! Redis.

use std::time::Duration;

use bytes::Bytes;
use libtest_mimic::Trial;
use vgi_worker::ExecutionId;
use vgi_worker::storage::{Backend, Storage, StorageError};

use crate::deployment::{self, Deployment};
use crate::servers::{RedisServer, free_port, redis_program};
use crate::{conformance, trial};

pub fn trials() -> Vec<Trial> {
    let missing = redis_program().is_none().then_some("redis-server");
    let test = |name: &str, test: fn(&mut RedisServer)| {
        trial(&format!("redis::{name}"), missing, move || test(&mut RedisServer::start()))
    };
    vec![
        test("it_conforms", it_conforms),
        test("long_logs_come_back_whole", long_logs_come_back_whole),
        test("a_lost_connection_is_made_again", a_lost_connection_is_made_again),
        test("an_earlier_life_of_the_server_is_over", an_earlier_life_of_the_server_is_over),
        test("a_secret_that_was_forgotten_is_told_again", a_secret_that_was_forgotten_is_told_again),
        test("a_server_without_memory_says_so", a_server_without_memory_says_so),
        test("a_wrong_password_is_refused", a_wrong_password_is_refused),
        test("many_executions_expire", many_executions_expire),
        test("consecutive_requests_may_reach_different_processes", |server| {
            scenario(server, deployment::consecutive_requests_may_reach_different_processes);
        }),
        test("a_process_that_dies_fails_its_call_alone", |server| {
            scenario(server, deployment::a_process_that_dies_fails_its_call_alone);
        }),
        test("a_thousand_executions_at_once_leave_nothing", |server| {
            scenario(server, deployment::a_thousand_executions_at_once_leave_nothing);
        }),
    ]
}

fn scenario(server: &RedisServer, scenario: fn(&Deployment)) {
    let rest = || server.keys().len();
    scenario(&Deployment { storage: server.url(), rest: &rest });
}

fn open(server: &RedisServer) -> std::sync::Arc<dyn Storage> {
    server.url().parse::<Backend>().unwrap().open().unwrap()
}

fn it_conforms(server: &mut RedisServer) {
    conformance::check(&*open(server));
    assert_eq!(server.keys(), Vec::<String>::new());
}

fn long_logs_come_back_whole(server: &mut RedisServer) {
    let storage = open(server);
    let id = ExecutionId::new("long");
    storage.begin(&id).unwrap();
    for entry in 0..2500_u64 {
        assert_eq!(storage.append(&id, "log", Bytes::from(entry.to_string())).unwrap(), entry);
    }
    for (from, limit) in [(0, usize::MAX), (1, 2499), (400, 1000), (0, 2000), (2499, 5), (2500, 5)] {
        let expected: Vec<_> = (from..2500).take(limit).map(|entry| Bytes::from(entry.to_string())).collect();
        assert_eq!(storage.scan(&id, "log", from, limit).unwrap(), expected, "{from} {limit}");
    }
    storage.end(&id).unwrap();
}

fn a_lost_connection_is_made_again(server: &mut RedisServer) {
    let storage = open(server);
    let id = ExecutionId::new("one");
    storage.begin(&id).unwrap();
    let mut client = server.client();
    redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").exec(&mut client).unwrap();
    let error = storage.put(&id, "k", Bytes::new()).unwrap_err();
    assert!(matches!(error, StorageError::Lost { .. }), "{error}");
    storage.put(&id, "k", Bytes::from_static(b"1")).unwrap();
    assert_eq!(storage.get(&id, "k").unwrap().unwrap(), "1");

    server.kill();
    storage.get(&id, "k").unwrap_err();
    let error = storage.get(&id, "k").unwrap_err();
    assert!(matches!(error, StorageError::Unreachable { .. }), "{error}");
    let expected =
        format!("the storage at redis://127.0.0.1:{}/0 cannot be reached: Connection refused", server.port());
    assert!(error.to_string().starts_with(&expected), "{error}");
    server.resume();
    let error = storage.get(&id, "k").unwrap_err();
    assert!(matches!(error, StorageError::UnknownExecution(_)), "{error}");
    storage.begin(&id).unwrap();
}

/// What a server saved before it lost what came later must not be taken for the whole.
fn an_earlier_life_of_the_server_is_over(server: &mut RedisServer) {
    let storage = open(server);
    let id = ExecutionId::new("one");
    storage.begin(&id).unwrap();
    storage.append(&id, "log", Bytes::from_static(b"saved")).unwrap();
    redis::cmd("SAVE").exec(&mut server.client()).unwrap();
    storage.append(&id, "log", Bytes::from_static(b"lost")).unwrap();
    server.kill();
    server.resume();
    assert_eq!(server.keys().len(), 2);
    storage.live().ok();
    let error = storage.append(&id, "log", Bytes::new()).unwrap_err();
    assert!(matches!(error, StorageError::UnknownExecution(_)), "{error}");
    assert_eq!(storage.expire(Duration::ZERO).unwrap(), 1);
    assert_eq!(server.keys(), Vec::<String>::new());
}

fn a_secret_that_was_forgotten_is_told_again(server: &mut RedisServer) {
    let (one, two) = (open(server), open(server));
    assert_eq!(one.shared_secret([1; 32]).unwrap(), [1; 32]);
    assert_eq!(two.shared_secret([2; 32]).unwrap(), [1; 32]);
    server.kill();
    server.resume();
    one.live().ok();
    one.live().unwrap();
    assert_eq!(open(server).shared_secret([3; 32]).unwrap(), [1; 32]);
    // a process that started just then has told another one
    server.kill();
    server.resume();
    assert_eq!(open(server).shared_secret([4; 32]).unwrap(), [4; 32]);
    two.live().ok();
    let error = two.live().unwrap_err().to_string();
    assert!(error.contains("start this worker again"), "{error}");
}

fn a_server_without_memory_says_so(server: &mut RedisServer) {
    let storage = open(server);
    let id = ExecutionId::new("one");
    storage.begin(&id).unwrap();
    storage.put(&id, "k", Bytes::from_static(b"1")).unwrap();
    redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg("1").exec(&mut server.client()).unwrap();
    let error = storage.append(&id, "log", Bytes::from_static(b"x")).unwrap_err().to_string();
    assert!(error.contains("maxmemory"), "{error}");
    assert_eq!(storage.get(&id, "k").unwrap().unwrap(), "1");
    assert!(storage.scan(&id, "log", 0, 1).unwrap().is_empty());
    assert!(storage.end(&id).unwrap());
    assert_eq!(server.keys(), Vec::<String>::new());
}

fn a_wrong_password_is_refused(server: &mut RedisServer) {
    for user in ["ann:wrong@", ":wrong@", ""] {
        let backend: Backend = format!("redis://{user}127.0.0.1:{}", server.port()).parse().unwrap();
        let error = backend.open().map(|_| ()).unwrap_err();
        assert!(matches!(error, StorageError::Refused { .. }), "{error}");
        assert!(!error.to_string().contains("wrong@") && !error.to_string().contains("ann"), "{error}");
    }
    let backend: Backend = format!("redis://:s3same@127.0.0.1:{}", free_port()).parse().unwrap();
    let error = backend.open().map(|_| ()).unwrap_err();
    assert!(matches!(error, StorageError::Unreachable { .. }) && !error.to_string().contains("s3same"), "{error}");
}

fn many_executions_expire(server: &mut RedisServer) {
    let storage = open(server);
    for number in 0..250_u64 {
        storage.begin(&ExecutionId::from(number.to_le_bytes().to_vec())).unwrap();
    }
    assert_eq!(storage.expire(Duration::from_secs(60)).unwrap(), 0);
    assert_eq!(storage.expire(Duration::ZERO).unwrap(), 250);
    assert_eq!(server.keys(), Vec::<String>::new());
}
