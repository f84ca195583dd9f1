//! What we rely on in ractor, and what we add to it.

mod bounded_mailbox;
mod ractor_facts;
