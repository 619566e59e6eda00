//! Tests of `model`: gradients against finite differences, the loss at step 0, generation, weights.

use shikha::model::{Config, Decoder, Parameters, Sampler, Session, Window, initialise, load_weights, save_weights};
use shikha::ops::IGNORE;
use shikha::recipe::Recipe;
use shikha::rng::Stream;

fn config(edit: impl FnOnce(&mut Config)) -> Config {
    let recipe = Recipe::load("pocket").unwrap();
    let mut config = Config::from_recipe(&recipe.model, 50, 0).unwrap();
    config.hidden_size = 24;
    config.intermediate_size = 20;
    config.num_hidden_layers = 2;
    config.num_attention_heads = 4;
    config.num_key_value_heads = 2;
    config.max_position_embeddings = 140;
    edit(&mut config);
    config
}

fn tokens(name: &str, count: usize, vocabulary: u64) -> Vec<u32> {
    let stream = Stream::new(3, name);
    (0..count as u64).map(|i| stream.below(i, vocabulary) as u32).collect()
}

/// Weights large enough that every part of the model matters to the loss.
fn parameters(config: &Config) -> Parameters<f64> {
    let mut parameters = initialise::<f64>(config, 5);
    let stream = Stream::new(9, "shift");
    parameters.flat.iter_mut().enumerate().for_each(|(i, x)| *x += 0.2 * stream.normal(i as u64));
    parameters
}

fn gradients(config: &Config, p: &Parameters<f64>, window: Window, recompute: bool) -> Parameters<f64> {
    let mut gradients = p.zeros_like();
    let scale = 1.0 / window.targets.iter().filter(|t| **t != IGNORE).count() as f64;
    Decoder::new(config.clone(), recompute).unwrap().forward_backward(p, window, scale, &mut gradients).unwrap();
    gradients
}

fn check_against_differences(config: &Config, batch: usize, time: usize) {
    let inputs = tokens("inputs", batch * time, config.vocab_size as u64);
    let mut targets = tokens("targets", batch * time, config.vocab_size as u64);
    targets[time / 2] = IGNORE;
    let window = Window { inputs: &inputs, targets: &targets, time };
    let p = parameters(config);
    let analytic = gradients(config, &p, window, false);
    let mut decoder = Decoder::new(config.clone(), false).unwrap();
    let tensors = p.tensors().to_vec();
    for tensor in &tensors {
        let stream = Stream::new(1, &tensor.name);
        let direction: Vec<f64> = (0..tensor.len() as u64).map(|i| stream.normal(i)).collect();
        let slope: f64 = analytic.values(tensor).iter().zip(&direction).map(|(g, d)| g * d).sum();
        let mut at = |eps: f64| {
            let mut shifted = p.clone();
            shifted.values_mut(tensor).iter_mut().zip(&direction).for_each(|(x, d)| *x += eps * d);
            decoder.loss(&shifted, window).unwrap().mean()
        };
        let h = 1e-4; // fourth-order central difference
        let difference = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
        let error = (slope - difference).abs() / difference.abs().max(1e-3);
        assert!(error < 1e-6, "{}: {slope} against {difference}", tensor.name);
    }
}

#[test]
fn every_parameter_has_the_gradient_that_finite_differences_give() {
    check_against_differences(&config(|_| ()), 2, 7);
    check_against_differences(&config(|c| c.tie_word_embeddings = false), 1, 5);
    check_against_differences(&config(|c| c.num_key_value_heads = 4), 3, 1);
    check_against_differences(&config(|c| c.num_key_value_heads = 1), 1, 133); // more than one tile
}

#[test]
fn recomputation_gives_the_same_bits() {
    let config = config(|_| ());
    let (inputs, targets) = (tokens("a", 40, 50), tokens("b", 40, 50));
    let window = Window { inputs: &inputs, targets: &targets, time: 20 };
    let p = parameters(&config);
    assert_eq!(gradients(&config, &p, window, false), gradients(&config, &p, window, true));
}

#[test]
fn bits_do_not_depend_on_threads() {
    let config = config(|c| c.vocab_size = 700);
    let (inputs, targets) = (tokens("a", 260, 700), tokens("b", 260, 700));
    let window = Window { inputs: &inputs, targets: &targets, time: 130 };
    let p: Parameters<f32> = initialise(&config, 1);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut gradients = p.zeros_like();
            let mut decoder = Decoder::new(config.clone(), false).unwrap();
            let loss = decoder.forward_backward(&p, window, 0.01, &mut gradients).unwrap();
            (loss.nats.to_bits(), gradients)
        })
    };
    let one = run(1);
    assert!(one == run(2) && one == run(3));
}

#[test]
fn ignored_positions_change_nothing() {
    let config = config(|_| ());
    let p = parameters(&config);
    let (inputs, mut targets) = (tokens("a", 12, 50), tokens("b", 12, 50));
    let expected = {
        let alone = Window { inputs: &inputs[..6], targets: &targets[..6], time: 6 };
        Decoder::new(config.clone(), false).unwrap().loss(&p, alone).unwrap()
    };
    targets[6..].fill(IGNORE);
    let window = Window { inputs: &inputs, targets: &targets, time: 6 };
    let loss = Decoder::new(config.clone(), false).unwrap().loss(&p, window).unwrap();
    assert_eq!((loss.tokens, loss.nats), (6, expected.nats));
}

#[test]
fn the_loss_at_step_0_is_the_logarithm_of_the_vocabulary() {
    for (hidden, heads, tied, vocabulary, layers) in
        [(96, 4, true, 2048, 4), (288, 6, true, 4096, 6), (384, 6, false, 8192, 2), (1024, 8, false, 4096, 1)]
    {
        for seed in [1, 2, 17] {
            let config = config(|c| {
                (c.hidden_size, c.intermediate_size, c.num_attention_heads) = (hidden, hidden * 2, heads);
                (c.tie_word_embeddings, c.vocab_size, c.num_hidden_layers) = (tied, vocabulary, layers);
            });
            let (inputs, targets) = (tokens("a", 256, vocabulary as u64), tokens("b", 256, vocabulary as u64));
            let window = Window { inputs: &inputs, targets: &targets, time: 64 };
            let p: Parameters<f32> = initialise(&config, seed);
            let loss = Decoder::new(config, false).unwrap().loss(&p, window).unwrap().mean();
            assert!((loss - (vocabulary as f64).ln()).abs() < 0.05, "width {hidden}, seed {seed}: {loss}");
        }
    }
}

#[test]
fn generation_with_a_cache_agrees_with_the_whole_window() {
    let config = config(|_| ());
    let p: Parameters<f32> = parameters(&config).cast();
    let ids = tokens("prompt", 30, 50);
    let mut session = Session::new(&config, &p);
    let mut decoder = Decoder::new(config.clone(), false).unwrap();
    session.extend(&ids[..10]).unwrap();
    for end in 11..30 {
        let logits = session.extend(&ids[end - 1..end]).unwrap();
        let total: f64 = logits.iter().map(|z| f64::from(*z).exp()).sum();
        let nats = total.ln() - f64::from(logits[ids[end] as usize]);
        let mut targets = vec![IGNORE; end];
        targets[end - 1] = ids[end];
        let whole = decoder.loss(&p, Window { inputs: &ids[..end], targets: &targets, time: end }).unwrap();
        assert!((whole.nats - nats).abs() < 1e-4, "position {end}: {} against {nats}", whole.nats);
    }
}

#[test]
fn too_many_tokens_and_strange_tokens_are_refused() {
    let config = config(|c| c.max_position_embeddings = 4);
    let p: Parameters<f32> = initialise(&config, 1);
    let mut session = Session::new(&config, &p);
    let message = session.extend(&[1, 2, 3, 4, 5]).unwrap_err().to_string();
    assert!(message.contains("context of 4"), "{message}");
    let message = session.extend(&[1, 50]).unwrap_err().to_string();
    assert!(message.contains("token id 50") && message.contains("vocabulary of 50"), "{message}");
    assert!(session.extend(&[]).unwrap_err().to_string().contains("no token"));
    assert!(session.is_empty());
}

#[test]
fn the_sampler_keeps_to_its_nucleus() {
    let logits = [1.0f32, 3.0, 2.0, -1.0];
    assert_eq!(Sampler::new(0.0, 1.0, 1).unwrap().choose(&logits).unwrap(), 1);
    let mut sampler = Sampler::new(1.0, 0.8, 1).unwrap(); // the two likeliest hold 0.65 + 0.24
    let drawn: Vec<u32> = (0..2000).map(|_| sampler.choose(&logits).unwrap()).collect();
    assert!(drawn.iter().all(|id| [1, 2].contains(id)));
    let share = drawn.iter().filter(|id| **id == 1).count() as f64 / 2000.0;
    assert!((share - 0.731).abs() < 0.03, "{share}"); // e³/(e³+e²)
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert!(sampler.choose(&[1.0, bad]).unwrap_err().to_string().contains("not finite"));
    }
    assert!(sampler.choose(&[]).is_err());
    assert!(Sampler::new(f64::NAN, 1.0, 1).is_err() && Sampler::new(1.0, 0.0, 1).is_err());
}

#[test]
fn weights_survive_a_round_trip_and_wrong_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.safetensors");
    let small = config(|_| ());
    let p: Parameters<f32> = initialise(&small, 1);
    save_weights(&path, &p, &[("recipe", "abc".to_owned())]).unwrap();
    assert_eq!(load_weights(&path, &small).unwrap(), p);
    let refused = |config: &Config| load_weights(&path, config).unwrap_err().to_string();
    assert!(refused(&config(|c| c.hidden_size = 32)).contains("has shape"));
    assert!(refused(&config(|c| c.num_hidden_layers = 3)).contains("is missing"));
    assert!(refused(&config(|c| c.num_hidden_layers = 1)).contains("is not part of the model"));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert!(refused(&small).contains("not a readable safetensors file"));
    let mut poisoned = p.clone();
    poisoned.flat[7] = f32::NAN;
    save_weights(&path, &poisoned, &[]).unwrap();
    assert!(refused(&small).contains("holds NaN at position 7"));
}
