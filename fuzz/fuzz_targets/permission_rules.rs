//! Any bytes as a rule and a shell command at the gate.

#![no_main]

#[allow(dead_code, reason = "each target checks one of them")]
#[path = "../../tests/sessions/gate_fuzz/bodies.rs"]
mod bodies;
#[path = "../../tests/sessions/gate_fuzz/judged.rs"]
mod judged;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::permission_rules(data));
