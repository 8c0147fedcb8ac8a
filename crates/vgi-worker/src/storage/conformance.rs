//! What every back end must do: one suite, which the tests of each of them run.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;

use crate::ids::ExecutionId;
use crate::storage::Storage;

/// Runs the whole suite on an empty storage, and leaves it empty.
pub(crate) fn check(storage: &dyn Storage) {
    values_and_logs_are_scoped_by_execution(storage);
    counters_count_and_do_not_overflow(storage);
    queues_are_first_in_first_out(storage);
    large_values_come_back_and_are_replaced(storage);
    an_ended_or_unknown_execution_is_refused_by_name(storage);
    only_idle_executions_expire(storage);
    concurrent_callers_do_not_disturb_each_other(storage);
    the_first_secret_stays(storage);
    assert_eq!(storage.live().unwrap(), 0);
}

fn begun(storage: &dyn Storage, name: &'static str) -> ExecutionId {
    let execution = ExecutionId::new(name);
    storage.begin(&execution).unwrap();
    execution
}

fn values_and_logs_are_scoped_by_execution(storage: &dyn Storage) {
    let (one, two) = (begun(storage, "one"), begun(storage, "two"));
    storage.put(&one, "k", Bytes::from_static(b"1")).unwrap();
    storage.put(&one, "k\0", Bytes::from_static(b"")).unwrap();
    // beginning again is no new beginning
    storage.begin(&one).unwrap();
    assert_eq!(storage.get(&one, "k").unwrap().unwrap(), "1");
    assert_eq!(storage.get(&one, "k\0").unwrap().unwrap(), "");
    assert_eq!(storage.get(&two, "k").unwrap(), None);
    assert!(storage.delete(&one, "k").unwrap());
    assert!(!storage.delete(&one, "k").unwrap());
    assert_eq!(storage.get(&one, "k").unwrap(), None);

    for (position, entry) in (0..).zip(["a", "b", "c"]) {
        assert_eq!(storage.append(&one, "log", Bytes::from(entry)).unwrap(), position);
    }
    assert_eq!(storage.append(&one, "other", Bytes::from_static(b"x")).unwrap(), 0);
    assert_eq!(storage.scan(&one, "log", 1, 10).unwrap(), ["b", "c"]);
    assert_eq!(storage.scan(&one, "log", 0, 2).unwrap(), ["a", "b"]);
    assert!(storage.scan(&one, "log", 0, 0).unwrap().is_empty());
    assert_eq!(storage.scan(&one, "log", 0, usize::MAX).unwrap().len(), 3);
    assert!(storage.scan(&one, "log", u64::MAX, 1).unwrap().is_empty());
    assert!(storage.scan(&two, "log", 0, 10).unwrap().is_empty());
    assert_eq!(storage.live().unwrap(), 2);
    assert!(storage.end(&one).unwrap() && storage.end(&two).unwrap());
}

fn counters_count_and_do_not_overflow(storage: &dyn Storage) {
    let (one, two) = (begun(storage, "one"), begun(storage, "two"));
    assert_eq!(storage.count(&one, "n", 0).unwrap(), 0);
    assert_eq!(storage.count(&one, "n", 5).unwrap(), 5);
    assert_eq!(storage.count(&one, "n", -7).unwrap(), -2);
    assert_eq!(storage.count(&two, "n", 1).unwrap(), 1);
    assert_eq!(storage.count(&one, "large", i64::MAX).unwrap(), i64::MAX);
    assert_eq!(storage.count(&one, "large", 1).unwrap_err().to_string(), "the counter 'large' would overflow");
    assert_eq!(storage.count(&one, "large", 0).unwrap(), i64::MAX);
    assert!(storage.end(&one).unwrap() && storage.end(&two).unwrap());
}

fn queues_are_first_in_first_out(storage: &dyn Storage) {
    let (one, two) = (begun(storage, "one"), begun(storage, "two"));
    assert_eq!(storage.pop(&one, "q").unwrap(), None);
    for item in ["a", "b", "c"] {
        storage.push(&one, "q", Bytes::from(item)).unwrap();
    }
    storage.push(&two, "q", Bytes::from_static(b"z")).unwrap();
    storage.push(&one, "other", Bytes::from_static(b"y")).unwrap();
    assert_eq!(storage.pop(&one, "q").unwrap().unwrap(), "a");
    storage.push(&one, "q", Bytes::from_static(b"d")).unwrap();
    for item in ["b", "c", "d"] {
        assert_eq!(storage.pop(&one, "q").unwrap().unwrap(), item);
    }
    assert_eq!(storage.pop(&one, "q").unwrap(), None);
    assert!(storage.end(&one).unwrap() && storage.end(&two).unwrap());
}

fn large_values_come_back_and_are_replaced(storage: &dyn Storage) {
    let one = begun(storage, "one");
    let large = |fill: u8| Bytes::from(vec![fill; 1_000_001]);
    storage.put(&one, "k", large(1)).unwrap();
    storage.put(&one, "k", large(2)).unwrap();
    assert_eq!(storage.get(&one, "k").unwrap().unwrap(), large(2));
    storage.put(&one, "k", Bytes::from_static(b"small")).unwrap();
    assert_eq!(storage.get(&one, "k").unwrap().unwrap(), "small");
    storage.append(&one, "log", large(3)).unwrap();
    storage.append(&one, "log", Bytes::from_static(b"small")).unwrap();
    storage.append(&one, "log", large(4)).unwrap();
    assert_eq!(storage.scan(&one, "log", 0, 3).unwrap(), [large(3), Bytes::from_static(b"small"), large(4)]);
    storage.push(&one, "q", large(5)).unwrap();
    assert_eq!(storage.pop(&one, "q").unwrap().unwrap(), large(5));
    storage.put(&one, "deleted", large(6)).unwrap();
    assert!(storage.delete(&one, "deleted").unwrap());
    assert!(storage.end(&one).unwrap());
}

fn an_ended_or_unknown_execution_is_refused_by_name(storage: &dyn Storage) {
    let id = ExecutionId::from(vec![0xab, 0x01]);
    let refused = |storage: &dyn Storage| {
        let large = Bytes::from(vec![0; 1_000_000]);
        [
            storage.get(&id, "k").unwrap_err(),
            storage.put(&id, "k", Bytes::new()).unwrap_err(),
            storage.put(&id, "k", large.clone()).unwrap_err(),
            storage.delete(&id, "k").unwrap_err(),
            storage.append(&id, "log", Bytes::new()).unwrap_err(),
            storage.append(&id, "log", large).unwrap_err(),
            storage.scan(&id, "log", 0, 1).unwrap_err(),
            storage.count(&id, "n", 1).unwrap_err(),
            storage.push(&id, "q", Bytes::new()).unwrap_err(),
            storage.pop(&id, "q").unwrap_err(),
        ]
    };
    let check = |storage: &dyn Storage| {
        for error in refused(storage) {
            let message = "unknown execution_id ab01 (init never ran or destructor already fired)";
            assert_eq!(error.to_string(), message);
        }
    };
    check(storage);
    storage.begin(&id).unwrap();
    storage.put(&id, "k", Bytes::from_static(b"1")).unwrap();
    storage.count(&id, "n", 1).unwrap();
    assert!(storage.end(&id).unwrap());
    assert!(!storage.end(&id).unwrap());
    check(storage);
    // nothing of the first life is there in a second one
    storage.begin(&id).unwrap();
    assert_eq!(storage.get(&id, "k").unwrap(), None);
    assert_eq!(storage.count(&id, "n", 1).unwrap(), 1);
    assert!(storage.end(&id).unwrap());
}

fn only_idle_executions_expire(storage: &dyn Storage) {
    let (idle, busy) = (begun(storage, "idle"), begun(storage, "busy"));
    storage.put(&idle, "k", Bytes::from(vec![0; 1_000_000])).unwrap();
    assert_eq!(storage.expire(Duration::from_secs(60)).unwrap(), 0);
    std::thread::sleep(Duration::from_millis(1500));
    storage.get(&busy, "k").unwrap();
    assert_eq!(storage.expire(Duration::from_secs(1)).unwrap(), 1);
    assert!(storage.get(&idle, "k").is_err());
    assert!(storage.get(&busy, "k").is_ok());
    assert!(storage.end(&busy).unwrap() && !storage.end(&idle).unwrap());
}

fn concurrent_callers_do_not_disturb_each_other(storage: &dyn Storage) {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 50;
    let id = begun(storage, "many");
    let work = |thread: u64| {
        (0..ROUNDS)
            .map(|round| {
                storage.count(&id, "n", 1).unwrap();
                storage.push(&id, "q", Bytes::from(format!("{thread} {round}"))).unwrap();
                storage.append(&id, "log", Bytes::from_static(b"x")).unwrap()
            })
            .collect::<Vec<_>>()
    };
    let positions: BTreeSet<u64> = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(positions.into_iter().eq(0..THREADS * ROUNDS));
    assert_eq!(u64::try_from(storage.count(&id, "n", 0).unwrap()).unwrap(), THREADS * ROUNDS);
    let take = || std::iter::from_fn(|| storage.pop(&id, "q").unwrap()).collect::<Vec<_>>();
    let items: Vec<Bytes> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(take)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(u64::try_from(items.len()).unwrap(), THREADS * ROUNDS);
    assert_eq!(items.iter().collect::<BTreeSet<_>>().len(), items.len());
    assert!(storage.end(&id).unwrap());
}

fn the_first_secret_stays(storage: &dyn Storage) {
    let first = storage.shared_secret([7; 32]).unwrap();
    assert_eq!(first, [7; 32]);
    assert_eq!(storage.shared_secret([8; 32]).unwrap(), first);
}
