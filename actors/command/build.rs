//! Hands the program the level of optimisation that it is built with: measurements warn where it is low.

fn main() {
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    println!("cargo::rustc-env=ENNEAD_OPT_LEVEL={level}");
    println!("cargo::rerun-if-changed=build.rs");
}
