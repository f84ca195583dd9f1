//! What a run is asked for with, in addition to a text: what each part does, and that the
//! transcript tells it.

mod compaction;
mod content;
mod sender;
mod system;
mod time_limit;
