//! `shikha record`: a whole run as one file for the report.

use clap::Args;
use shikha::pipeline::record;
use shikha::train::record::Price;
use std::error::Error;
use std::path::PathBuf;

/// What the machine costs.
#[derive(Args)]
pub struct PriceArgs {
    /// US$ for an hour of this machine
    #[arg(long, requires = "stated_by", value_parser = dollars)]
    price: Option<f64>,
    /// Whose price that is, and of what date
    #[arg(long, requires = "price")]
    stated_by: Option<String>,
}

impl PriceArgs {
    /// The price with who states it.
    pub fn price(&self) -> Option<Price> {
        let stated = self.price.zip(self.stated_by.clone());
        stated.map(|(dollars_an_hour, stated_by)| Price { dollars_an_hour, stated_by })
    }
}

fn dollars(text: &str) -> Result<f64, String> {
    let price = text.parse().map_err(|_| "not a number".to_owned())?;
    if f64::is_finite(price) && price >= 0.0 { Ok(price) } else { Err("a price is a number from 0 up".to_owned()) }
}

/// Which run, and where its record goes.
#[derive(Args)]
pub struct RecordArgs {
    /// Directory of a finished run
    run: PathBuf,
    #[command(flatten)]
    price: PriceArgs,
    /// Folder for the record
    #[arg(long, value_name = "DIR", default_value = "checkpoints/gpu")]
    store: PathBuf,
}

impl RecordArgs {
    /// Writes the record, and gives what to print.
    pub fn run(&self) -> Result<String, Box<dyn Error>> {
        let record = record(&self.run, self.price.price())?;
        let path = record.save(&self.store)?;
        let lines: String = record.log.iter().map(|line| format!("{line}\n")).collect();
        Ok(format!("{lines}{}; `shikha figures` draws it\n", path.display()))
    }
}
