//! What a run is asked for with, beside a text: what each part does, and that the transcript tells it.

mod content;
mod sender;
mod system;
mod time_limit;
