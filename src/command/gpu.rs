//! `shikha bench gpu`: one command for a machine with an NVIDIA GPU.

use super::record::PriceArgs;
use clap::Args;
use std::error::Error;
use std::path::PathBuf;

/// What to measure, and where the record goes.
#[derive(Args)]
pub struct GpuArgs {
    /// A built-in recipe, or the path of a recipe file
    #[arg(default_value = "bn-0.4b-h100")]
    pub recipe: String,
    /// Steps that are timed
    #[arg(long, default_value_t = 10)]
    pub steps: usize,
    /// Number of the GPU
    #[arg(long, default_value_t = 0)]
    pub gpu: usize,
    #[command(flatten)]
    pub price: PriceArgs,
    /// Folder for the record
    #[arg(long, value_name = "DIR", default_value = "checkpoints/gpu")]
    pub store: PathBuf,
    /// Measure the processor where there is no GPU
    #[arg(long)]
    pub or_cpu: bool,
}

/// Whether there is no GPU to use, rather than one that does something wrong.
pub fn is_missing(reason: &(dyn Error + 'static)) -> bool {
    #[cfg(feature = "cuda")]
    if let Some(error) = reason.downcast_ref::<shikha::ops::cuda::DeviceError>() {
        return error.is_missing();
    }
    matches!(reason.downcast_ref(), Some(shikha::train::TrainError::NoCuda))
}

impl GpuArgs {
    /// Checks, measures and writes the record; the reason when there is no GPU to use.
    #[cfg(feature = "cuda")]
    pub fn run(&self) -> Result<(), Box<dyn Error>> {
        use shikha::ops::cuda::Device;
        use shikha::recipe::Recipe;
        use shikha::train::gpu::{check_all, time};
        let recipe = Recipe::load(&self.recipe)?;
        let info = Device::open(self.gpu)?.info()?;
        let mut lines = Vec::new();
        let mut log = |line: String| {
            println!("{line}");
            lines.push(line);
        };
        log(format!("{}, compute capability {}, CUDA {}", info.name, info.capability, info.cuda));
        let checked = check_all(|| Device::open(self.gpu), &mut log);
        let timed = if checked.wrong.is_empty() {
            let memory = |device: &mut Device| device.in_use();
            let timed = time(Device::open(self.gpu)?, &recipe, self.steps, memory, &mut log);
            timed.map_err(|error| log(format!("not timed: {error}"))).ok()
        } else {
            log("not timed: something is wrong".to_owned());
            None
        };
        let mut record = self.record(info, checked, timed);
        if let Some(timed) = &record.timed {
            let share = record.peak_share(timed.flops_per_token, timed.tokens_per_second);
            let share = share.map_or("not known".to_owned(), |share| format!("{:.1} %", 100.0 * share));
            let memory = [timed.memory, timed.planned_memory].map(|bytes| format!("{:.2} GB", bytes as f64 / 1e9));
            log(format!("{:.0} tokens/s, share of the peak {share}", timed.tokens_per_second));
            log(format!("{} in use, {} planned", memory[0], memory[1]));
        }
        record.log = lines;
        println!("{}; `shikha figures` draws it", record.save(&self.store)?.display());
        let wrong = record.checked.map_or(Vec::new(), |checked| checked.wrong);
        match wrong.first() {
            Some(first) => Err(format!("{} things are wrong, the first: {first}", wrong.len()).into()),
            None => Ok(()),
        }
    }

    /// What was found, with the machine it was found on.
    #[cfg(feature = "cuda")]
    fn record(
        &self,
        info: shikha::machine::GpuInfo,
        checked: shikha::train::record::Checked,
        timed: Option<shikha::train::record::Timed>,
    ) -> shikha::train::record::Record {
        use shikha::machine::{Hardware, clock, day_of, source};
        use shikha::train::record::{FORMAT, Record};
        Record {
            format: FORMAT,
            date: day_of(clock()),
            source: source(),
            hardware: Hardware::here(Some(info)),
            price: self.price.price(),
            checked: Some(checked),
            timed,
            run: None,
            log: Vec::new(),
        }
    }

    /// Says that this program cannot use a GPU.
    #[cfg(not(feature = "cuda"))]
    pub fn run(&self) -> Result<(), Box<dyn Error>> {
        shikha::recipe::Recipe::load(&self.recipe)?;
        Err(shikha::train::TrainError::NoCuda.into())
    }
}
