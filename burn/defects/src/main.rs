//! What Burn does wrong as a training backend, proven by running: one check a call.
//!
//! `--list` prints the entries as JSON; `--child ID` runs one check in this process and prints its verdict as
//! JSON: with `--control` the workaround in its place, with `--arbiter` what the arbiter says of a model that has it,
//! with `--aspect curves` a short training run with and without. A check may end the process: that is its evidence,
//! so whoever calls runs each in a process of its own, as `shikha defects --burn PROGRAM` does. `--meter` times a
//! linear layer forward and backward.

mod asked;
mod catalogue;
#[cfg(any(test, feature = "cuda", feature = "wgpu"))]
mod decoder;
mod entries;
mod growth;
mod meter;
mod probe;
mod reproducer;
mod speed;
mod training;

use catalogue::{Asked, BURN, Entry, Training};
use clap::{ArgGroup, Parser};
use shikha::defects::{Answer, Aspect, Curves, end_with_parent};
use std::error::Error;
use std::process::ExitCode;

/// Burn's training defects, one check a call
#[derive(Parser)]
#[command(version, group(ArgGroup::new("what").required(true)))]
struct Arguments {
    /// Print the version of Burn and the entries as JSON
    #[arg(long, group = "what")]
    list: bool,
    /// Time a linear layer of Burn, Candle and ours, forward and backward, and print JSON
    #[arg(long, group = "what")]
    meter: bool,
    /// Print a program that shows one defect with Burn alone, for its maintainers
    #[arg(long, value_name = "ID", group = "what")]
    reproducer: Option<String>,
    /// Run one check in this process and print its verdict as JSON
    #[arg(long, value_name = "ID", group = "what")]
    child: Option<String>,
    /// With --child: run the control, which does the same with the workaround
    #[arg(long, requires = "child")]
    control: bool,
    /// With --child: the arbiter on a model that has the defect, or with --control the workaround
    #[arg(long, requires = "child")]
    arbiter: bool,
    /// With --child: check, control, arbiter, arbiter-control or curves
    #[arg(long, requires = "child", conflicts_with_all = ["control", "arbiter"])]
    aspect: Option<String>,
    /// With --child: end when the standard input closes
    #[arg(long, hide = true)]
    watched: bool,
}

impl Arguments {
    fn aspect(&self) -> Result<Aspect, String> {
        let Some(name) = &self.aspect else {
            return Ok(match (self.arbiter, self.control) {
                (false, false) => Aspect::Check,
                (false, true) => Aspect::Control,
                (true, false) => Aspect::Arbiter,
                (true, true) => Aspect::ArbiterControl,
            });
        };
        let known = || Aspect::ALL.map(Aspect::name).join(", ");
        Aspect::named(name).ok_or_else(|| format!("there is no aspect called `{name}`: use {}", known()))
    }
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(line) => {
            println!("{}", line.trim_end());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<String, Box<dyn Error>> {
    let entries = entries::all();
    if arguments.meter {
        return Ok(serde_json::to_string_pretty(&meter::run()?)?);
    }
    if let Some(id) = &arguments.reproducer {
        let nothing = || format!("`{id}` cannot be shown by a program on this machine");
        return Ok(reproducer::program(find(&entries, id)?).ok_or_else(nothing)?);
    }
    let Some(id) = &arguments.child else {
        // A build with a GPU backend is for what needs one.
        let version = growth::BUILT.map_or(BURN.to_owned(), |backend| format!("{BURN}, {backend}"));
        let entries: Vec<&Entry> = entries.iter().filter(|e| growth::BUILT.is_none() || e.needs_gpu()).collect();
        return Ok(serde_json::json!({ "version": version, "entries": entries }).to_string());
    };
    let aspect = arguments.aspect()?;
    if arguments.watched {
        end_with_parent();
    }
    found(find(&entries, id)?, aspect)
}

fn find<'a>(entries: &'a [Entry], id: &str) -> Result<&'a Entry, String> {
    let known = || entries.iter().map(|e| e.id).collect::<Vec<_>>().join(", ");
    entries.iter().find(|e| e.id == id).ok_or_else(|| format!("there is no entry called `{id}`: use {}", known()))
}

/// What one aspect of an entry comes to, as JSON.
fn found(entry: &Entry, aspect: Aspect) -> Result<String, Box<dyn Error>> {
    let asked = |defective| match entry.arbiter {
        Asked::Model(ask) => ask(defective),
        Asked::NotHere(what) => Answer::NotHere(what.to_owned()),
    };
    Ok(match aspect {
        Aspect::Check => serde_json::to_string(&(entry.reproduce)()?),
        Aspect::Control => serde_json::to_string(&(entry.control)()?),
        Aspect::Arbiter => serde_json::to_string(&asked(true)),
        Aspect::ArbiterControl => serde_json::to_string(&asked(false)),
        Aspect::Curves => serde_json::to_string(&match entry.training {
            Training::Runs(run) => training::curves(run),
            Training::NoCurve(why) => Curves::None { why: why.to_owned() },
        }),
    }?)
}
