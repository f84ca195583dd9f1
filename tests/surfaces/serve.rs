//! The server, over real sockets: sessions, runs, events, records, questions, and who may what.

mod access;
mod client;
mod confined;
mod connections;
mod events;
mod killed;
mod limits;
mod load;
mod passive;
mod process;
mod rig;
mod runs;
