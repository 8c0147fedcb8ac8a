//! Serves the catalog `words` on the port that is given, or on 9001, until SIGTERM or SIGINT.
#![forbid(unsafe_code)]

use std::io::Write;

use vgi_worker::{Options, serve};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args().nth(1).map_or(Ok(9001), |port| port.parse())?;
    let server = serve(word_count::catalog()?, Options { port, ..Options::default() })?;
    writeln!(std::io::stdout(), "listening on {}", server.url())?;
    server.serve_until_told()?;
    Ok(())
}
