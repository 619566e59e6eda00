//! `shikha generate`: a prompt, continued.

use clap::Args;
use shikha::model::{Sampler, Session};
use shikha::pipeline::Exported;
use shikha::tokenizer::TextStream;
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;

/// What to continue, and how.
#[derive(Args)]
pub struct GenerateArgs {
    /// Text to continue; empty starts a new text
    #[arg(default_value = "")]
    prompt: String,
    /// Directory of a finished run, or of an exported or imported model
    #[arg(long, value_name = "DIR", default_value = "runs/pocket")]
    run_dir: PathBuf,
    /// Tokens to write, at most
    #[arg(long, default_value_t = 64)]
    tokens: usize,
    /// 0 always takes the likeliest token; 1 draws as the model believes
    #[arg(long, default_value_t = 0.8)]
    temperature: f64,
    /// Draw from the fewest tokens that hold this much probability
    #[arg(long, default_value_t = 0.95)]
    top_p: f64,
    /// Seed of the draws
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

impl GenerateArgs {
    /// Writes the prompt and its continuation to standard output as it comes.
    pub fn run(&self) -> Result<(), Box<dyn Error>> {
        let trained = Exported::load(&self.run_dir)?;
        let mut sampler = Sampler::new(self.temperature, self.top_p, self.seed)?;
        let end = trained.tokenizer.end_of_text();
        let mut ids = vec![end];
        ids.extend(trained.tokenizer.encode(&self.prompt)?);
        let mut session = Session::new(&trained.config, &trained.parameters);
        let mut logits = session.extend(&ids)?;
        let mut stream = TextStream::new(&trained.tokenizer);
        let mut out = std::io::stdout().lock();
        write!(out, "{}", self.prompt)?;
        let room = trained.config.max_position_embeddings - session.len();
        for _ in 0..self.tokens.min(room) {
            let id = sampler.choose(&logits)?;
            if id == end {
                break;
            }
            write!(out, "{}", stream.push(id)?)?;
            out.flush()?;
            logits = session.extend(&[id])?;
        }
        writeln!(out, "{}", stream.finish())?;
        if self.tokens > room {
            eprintln!("stopped at the model's context of {} tokens", trained.config.max_position_embeddings);
        }
        Ok(())
    }
}
