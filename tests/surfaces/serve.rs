//! The server, over real sockets: sessions, runs, events, records, questions, and who may what.

mod access;
mod client;
mod confined;
mod connections;
mod events;
mod kept;
mod killed;
mod limits;
mod load;
mod mounted;
mod passive;
mod process;
mod rig;
mod runs;
mod sandboxed;
