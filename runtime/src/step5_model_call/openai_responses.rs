//! The wire format of the Responses API.
//!
//! Used without state at the server (`store: false`). Reasoning items come back encrypted; each is
//! kept whole as a block of type `openai_item`, `{"type":"openai_item","item":{…}}`, at its place in
//! front of the calls it led to, and goes back as it came. Only this format sends such blocks: to
//! any other provider they are nothing. Texts and calls are kept as blocks that every format knows,
//! so a conversation can move on to another provider.

mod items;
mod request;
mod stream;
mod whole;
mod wire;

pub(super) use self::request::form;
pub(crate) use self::stream::Responses;
pub use self::whole::read_whole;
