//! The back ends that need a server, tried with the real one.
//!
//! A server whose program is not installed makes its tests ignored; with `VGI_TEST_SERVERS=1`, or where `CI` is set, it makes them fail.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::cast_precision_loss, reason = "the numbers are small")]

#[path = "../../src/storage/conformance.rs"]
mod conformance;
#[path = "../support/deployment.rs"]
mod deployment;
mod postgres;
#[path = "../support/proxy.rs"]
mod proxy;
mod redis_server;
#[path = "../support/servers.rs"]
mod servers;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/worker.rs"]
mod worker;

/// What the suite of all back ends names.
mod ids {
    pub(crate) use vgi_worker::ExecutionId;
}

/// What the suite of all back ends names.
mod storage {
    pub(crate) use vgi_worker::storage::Storage;
}

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let postgres = postgres::shared();
    let trials = redis_server::trials().into_iter().chain(postgres::trials(&postgres)).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    postgres::end(&postgres);
    conclusion.exit_code()
}

/// A test, and the program that it needs if that is missing.
fn trial(name: &str, missing: Option<&'static str>, test: impl FnOnce() + Send + 'static) -> Trial {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
    let required = set("VGI_TEST_SERVERS") || set("CI");
    let ignored = missing.is_some() && !required;
    let run = move || {
        if let Some(program) = missing {
            return Err(Failed::from(format!("{program} is not installed")));
        }
        test();
        Ok(())
    };
    Trial::test(name, run).with_ignored_flag(ignored)
}
