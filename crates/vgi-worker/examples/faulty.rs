//! The example catalog on a server that misbehaves:
//! `cargo run -p vgi-worker --features faults --example faulty -- 9009 'process#3=stall-in-the-body' 'combine=status:500'`
#![forbid(unsafe_code)]

use std::io::Write;

use vgi_worker::faults::{Rule, serve_with_faults};
use vgi_worker::{Options, functions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().map_or(Ok(9009), |port| port.parse())?;
    let rules = arguments.map(|rule| rule.parse()).collect::<Result<Vec<Rule>, _>>()?;
    let server = serve_with_faults(functions::example_catalog(true)?, Options { port, ..Options::default() }, rules)?;
    writeln!(std::io::stdout(), "misbehaves on {}", server.url())?;
    loop {
        std::thread::park();
    }
}
