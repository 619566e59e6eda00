//! Tells the checks which version of Burn they are built against, from the lock file beside the manifest.
fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let lock = std::fs::read_to_string("Cargo.lock").expect("a lock file");
    let (_, rest) = lock.split_once("name = \"burn\"\nversion = \"").expect("burn is in the lock file");
    let version = rest.split('"').next().expect("a version");
    println!("cargo::rustc-env=BURN_VERSION={version}");
    println!("cargo::rustc-check-cfg=cfg(alias_compiles)");
    if !version.starts_with("0.20.") {
        println!("cargo::rustc-cfg=alias_compiles");
    }
}
