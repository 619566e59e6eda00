//! Times training steps of the 16.9 M parameter model.
use shikha::model::*;
use shikha::recipe::Recipe;
use std::time::Instant;
fn main() {
    let r = Recipe::load("pocket").unwrap();
    let mut c = Config::from_recipe(&r.model, 8192, 0).unwrap();
    c.hidden_size = 384;
    c.intermediate_size = 1024;
    c.num_hidden_layers = 6;
    c.num_attention_heads = 6;
    c.num_key_value_heads = 6;
    c.max_position_embeddings = 256;
    c.tie_word_embeddings = false;
    let p: Parameters<f32> = initialise(&c, 1);
    println!("{} params", p.flat.len());
    let mut g = p.zeros_like();
    let ids: Vec<u32> = (0..2048u32).map(|i| i.wrapping_mul(2654435761) % 8192).collect();
    let w = Window { inputs: &ids, targets: &ids, time: 256 };
    let mut d = Decoder::new(c.clone(), false).unwrap();
    let peak = shikha::ops::gemm_peak();
    println!("peak {:.0}", peak / 1e9);
    for _ in 0..6 {
        let t = Instant::now();
        g.flat.fill(0.0);
        d.forward_backward(&p, w, 1e-3, &mut g).unwrap();
        let s = t.elapsed().as_secs_f64();
        println!(
            "{:.0} ms {:.0} tok/s share {:.2}",
            s * 1e3,
            2048.0 / s,
            c.train_flops_per_token() * 2048.0 / s / peak
        );
    }
    println!(
        "{}",
        std::fs::read_to_string("/proc/self/status").unwrap().lines().find(|l| l.starts_with("VmHWM")).unwrap()
    );
}
