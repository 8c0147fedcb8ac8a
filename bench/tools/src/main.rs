//! What the benchmark needs and Python is too slow for.
//!
//! ```text
//! vgi-bench-tools memcpy BYTES             seconds of one copy of that many bytes
//! vgi-bench-tools tcp BYTES CONNECTIONS    seconds to send them over loopback, divided between the connections
//! vgi-bench-tools proxy PORT MILLIS MBIT   relays to PORT with a delay each way, and a bandwidth (0 for none); prints its port
//! ```
#![forbid(unsafe_code)]

mod limits;
mod proxy;

use std::io::{Error, ErrorKind, Result};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vgi-bench-tools: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<()> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["memcpy", bytes] => println!("{}", limits::memcpy(number(bytes)?)),
        ["tcp", bytes, connections] => println!("{}", limits::tcp(number(bytes)?, number(connections)?)?),
        ["proxy", port, millis, mbit] => proxy::run(number(port)?, number(millis)?, number(mbit)?)?,
        _ => {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "usage: memcpy BYTES | tcp BYTES CONNECTIONS | proxy PORT MILLIS MBIT",
            ));
        }
    }
    Ok(())
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T> {
    word.parse().map_err(|_| Error::new(ErrorKind::InvalidInput, format!("'{word}' is not a number in range")))
}
