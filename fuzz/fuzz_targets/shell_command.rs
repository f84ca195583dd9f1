//! Any bytes as a shell command at the gate.

#![no_main]

#[allow(dead_code, reason = "each target checks one of them")]
#[path = "../../tests/gate_fuzz/bodies.rs"]
mod bodies;
#[path = "../../tests/gate_fuzz/judged.rs"]
mod judged;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::shell_command(data));
