//! Sessions under faults.

mod backpressure;
mod bounds;
mod crash_rows;
mod damage;
mod failing_disk;
mod hostile_answers;
mod interrupts;
mod kill_matrix;
mod lifecycle;
mod mutated_histories;
mod stream_cuts;
mod watchdogs;
