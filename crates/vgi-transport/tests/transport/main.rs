//! The transport against an in-process server: a whole call, first contact, and servers that misbehave.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where something is not as it should be")]

mod attaching;
mod calling;
mod contact;
mod credentials;
mod far;
mod hostile;
mod listing;
mod matrix;
mod retrying;
mod secure;
mod support;
mod uploading;
mod waiting;
