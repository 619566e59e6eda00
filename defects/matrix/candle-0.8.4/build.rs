//! Candle 0.8.4 has neither `scatter` nor CPU flash attention.

fn main() {
    println!("cargo::rustc-cfg=candle_lacks=\"flash-attention\"");
    println!("cargo::rustc-cfg=candle_lacks=\"scatter\"");
}
