//! What the modules promise, one by one.

mod compare;
mod parser;
mod variables;
