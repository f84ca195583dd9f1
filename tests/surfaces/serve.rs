//! The server, over real sockets: sessions, runs, events, records, questions, and who may what.

mod access;
mod client;
mod events;
mod limits;
mod load;
mod process;
mod rig;
mod runs;
