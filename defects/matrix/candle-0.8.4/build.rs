//! Candle 0.8.4 has neither `scatter`, nor CPU flash attention, nor rope by tables of three axes.

fn main() {
    for name in ["flash-attention", "rope-tables", "scatter"] {
        println!("cargo::rustc-cfg=candle_lacks=\"{name}\"");
    }
}
