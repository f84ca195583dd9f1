//! One process for the sessions of many programs: `ennead host`, and the commands that attach to it.
//!
//! A command that a program drives with `--host auto` looks for the socket of a host. Where one listens that is of the same
//! user and version and has the same environment, the command becomes a client of it: it hands over its arguments and its
//! working directory, then what comes on standard input, and prints what comes back. It holds no session, no runtime and
//! no connection to a model. Everywhere else the command serves its session itself, as with `--host off`, so that the
//! program reads the same answers either way.
//!
//! ```text
//! client                          host
//!   Hello ───────────────────────▶  same user, version, environment?
//!         ◀─────────────────────── Welcome, or Refused: then the client goes its own way
//!   Input, EndOfInput, Signal ────▶  lines of the program
//!         ◀─────────────────────── Output, Notes …, at last Exit
//! ```
//!
//! * [`frames`]: what goes over the socket;
//! * [`environment`]: whether two processes would do the same;
//! * [`place`]: where the socket is, and who may listen there;
//! * [`client`]: the command as a client;
//! * [`guest`]: a client as the host sees it.

pub mod client;
pub mod environment;
pub mod frames;
pub mod guest;
pub mod place;
